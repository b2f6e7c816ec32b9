// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/internal/lists"
)

// labelPrefix is the prefix of the labels that identify an object.
const labelPrefix = "state.deployerkit.dev/"

// Each object of a graph has these labels. If a value is not a valid label value, for example because it is longer than
// 63 characters, the label contains a readable part of the value and a hash. In this case, an annotation with the same
// key contains the full value.
const (
	// LabelComponent is the label with the name of the component.
	LabelComponent = labelPrefix + "component"
	// LabelInstance is the label with the name of the instance of ForEach. Only objects of a ForEach have this label.
	LabelInstance = labelPrefix + "instance"
	// labelParentGroup is the label with the API group of the deploy item.
	labelParentGroup = labelPrefix + "parent-group"
	// labelParentVersion is the label with the API version of the deploy item, without the group.
	labelParentVersion = labelPrefix + "parent-version"
	// labelParentPlural is the label with the resource name of deploy items.
	labelParentPlural = labelPrefix + "parent-plural"
	// labelParentNamespace is the label with the namespace of the deploy item.
	labelParentNamespace = labelPrefix + "parent-namespace"
	// labelParentName is the label with the name of the deploy item.
	labelParentName = labelPrefix + "parent-name"
	// labelParentUID is the label with the UID of the deploy item. Items in different clusters may have the same name,
	// but not the same UID.
	labelParentUID = labelPrefix + "parent-uid"
)

// parentPlural is the resource name of deploy items.
const parentPlural = "deployitems"

// Identity returns the labels of the objects of a component and an instance, which is "" outside of ForEach. If a value
// is not a valid label value, Identity also returns an annotation that contains this value.
func Identity(item *lsv1alpha1.DeployItem, component, instance string) (labels, annotations map[string]string) {
	full := map[string]string{
		LabelComponent:       component,
		labelParentGroup:     lsv1alpha1.SchemeGroupVersion.Group,
		labelParentVersion:   lsv1alpha1.SchemeGroupVersion.Version,
		labelParentPlural:    parentPlural,
		labelParentNamespace: item.Namespace,
		labelParentName:      item.Name,
		labelParentUID:       string(item.UID),
	}
	if instance != "" {
		full[LabelInstance] = instance
	}
	labels, annotations = make(map[string]string, len(full)), map[string]string{}
	for key, value := range full {
		labels[key] = labelValue(value)
		if labels[key] != value {
			annotations[key] = value
		}
	}
	return labels, annotations
}

// Selector returns a selector for the objects of a component of a deploy item. If `instance` is empty, the selector
// matches the objects of all instances. If `component` is empty, it matches the objects of all components.
func Selector(item types.UID, component, instance string) labels.Selector {
	set := labels.Set{labelParentUID: labelValue(string(item))}
	if component != "" {
		set[LabelComponent] = labelValue(component)
	}
	if instance != "" {
		set[LabelInstance] = labelValue(instance)
	}
	return set.AsSelector()
}

// These are the maximum length of a label value and the length of a hash, in characters.
const (
	maxLabel   = 63
	hashLength = 10
)

// labelValue returns the given text if it is a valid label value. Otherwise it returns a readable part of the text and
// a hash.
func labelValue(value string) string {
	if isLabelValue(value) {
		return value
	}
	return sanitize(value, maxLabel-1-hashLength) + "-" + hash(value)
}

// isLabelValue reports whether a text is a valid label value. Unlike validation.IsValidLabelValue, it uses no regular
// expression, because each run calls it several times per object.
func isLabelValue(value string) bool {
	if value == "" {
		return true
	}
	if len(value) > maxLabel || !isAlphanumeric(rune(value[0])) || !isAlphanumeric(rune(value[len(value)-1])) {
		return false
	}
	for _, c := range value {
		if !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// sanitize returns the first bytes of a text, at most `length`. All characters except letters and digits are replaced
// by "-", and each "-" at the beginning or end is removed. The result is never empty.
func sanitize(text string, length int) string {
	out := []byte(text[:min(len(text), length)])
	for i, c := range out {
		if !isAlphanumeric(rune(c)) {
			out[i] = '-'
		}
	}
	if trimmed := strings.Trim(string(out), "-"); trimmed != "" {
		return trimmed
	}
	return "x"
}

func isAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// base32Lower is an encoding that produces only characters that are allowed in object names.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hash returns a hash of all given texts. The hash has 50 bits.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return base32Lower.EncodeToString(h.Sum(nil))[:hashLength]
}

// generateName returns a name for an object that has no name. The name is the same in each run, and different for each
// item, component and instance. The API server cannot generate the name, because the inventory must contain the name
// before the object is created.
func (n *nodeRun) generateName(prefix string) string {
	if prefix == "" {
		prefix = n.component
	}
	return sanitize(strings.ToLower(prefix), maxLabel-1-hashLength) + "-" + hash(string(n.run.item.UID), n.component, n.instanceName())
}

// addIdentities adds the labels of the node to the given objects, and sets the names of objects that have none. It
// modifies the objects. If one of them is a list, the result contains the items of the list instead.
func (n *nodeRun) addIdentities(desired []apply.Desired) ([]apply.Desired, error) {
	out := make([]apply.Desired, 0, len(desired))
	for _, d := range desired {
		switch {
		case d.Object == nil:
			continue // the component has no object for this item
		case lists.IsList(d.Object.Object):
			items, err := flattenList(d)
			if err != nil {
				return nil, err
			}
			if items, err = n.addIdentities(items); err != nil {
				return nil, err
			}
			out = append(out, items...)
		default:
			if err := n.addIdentity(d.Object); err != nil {
				return nil, err
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// flattenList returns the items of a list and of the lists that it contains.
func flattenList(list apply.Desired) ([]apply.Desired, error) {
	items, err := lists.Flatten(list.Object.Object, nil)
	out := make([]apply.Desired, len(items))
	for i, item := range items {
		out[i] = list
		out[i].Object = &unstructured.Unstructured{Object: item.Body}
	}
	return out, err
}

// addIdentity adds the labels to one object, and sets a name if the object has none.
func (n *nodeRun) addIdentity(obj *unstructured.Unstructured) error {
	if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
		return fmt.Errorf("the object %q lacks apiVersion or kind", obj.GetName())
	}
	if obj.GetName() == "" {
		obj.SetName(n.generateName(strings.TrimSuffix(obj.GetGenerateName(), "-")))
		obj.SetGenerateName("")
	}
	ours, full := Identity(n.run.item, n.component, n.instanceName())
	set := obj.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if value, reserved := ours[key]; reserved && value != set[key] {
			return fmt.Errorf("%s has the label %s=%s, which the library sets", apply.ToRef(obj), key, set[key])
		}
	}
	obj.SetLabels(mergeMaps(set, ours))
	if len(full) > 0 {
		obj.SetAnnotations(mergeMaps(obj.GetAnnotations(), full))
	}
	return nil
}

// mergeMaps copies the entries of `more` to the map `into` and returns it. If `into` is nil, mergeMaps creates a map.
func mergeMaps(into, more map[string]string) map[string]string {
	if into == nil {
		into = make(map[string]string, len(more))
	}
	maps.Copy(into, more)
	return into
}

// getInstance returns the name of the ForEach instance that an object belongs to.
func getInstance(obj *unstructured.Unstructured) string {
	if full, found := obj.GetAnnotations()[LabelInstance]; found {
		return full
	}
	return obj.GetLabels()[LabelInstance]
}
