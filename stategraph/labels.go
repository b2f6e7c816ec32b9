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
)

// Prefix is the prefix of the labels that identify an object.
const Prefix = "state.deployerkit.dev/"

// These are labels of all objects that the components of a graph keep. A value that is no label value, or longer than
// 63 characters, is shortened to a readable part and a hash. The full value is then in an annotation of the same key.
const (
	// LabelComponent is the component of the graph.
	LabelComponent = Prefix + "component"
	// LabelInstance is the instance within a ForEach. Other objects do not have it.
	LabelInstance = Prefix + "instance"
	// LabelParentGroup is the API group of the deploy item.
	LabelParentGroup = Prefix + "parent-group"
	// LabelParentVersion is the API version of the deploy item, without its group.
	LabelParentVersion = Prefix + "parent-version"
	// LabelParentPlural is the resource name of deploy items.
	LabelParentPlural = Prefix + "parent-plural"
	// LabelParentNamespace is the namespace of the deploy item.
	LabelParentNamespace = Prefix + "parent-namespace"
	// LabelParentName is the name of the deploy item.
	LabelParentName = Prefix + "parent-name"
	// LabelParentUID is the UID of the deploy item. It is needed because two clusters may have items of the same name.
	LabelParentUID = Prefix + "parent-uid"
)

// parentPlural is the resource name of deploy items.
const parentPlural = "deployitems"

// Identity returns the labels of an object of a component, and the annotations with the values that are too long for a
// label. instance is empty where there is none.
func Identity(item *lsv1alpha1.DeployItem, component, instance string) (labels, annotations map[string]string) {
	full := map[string]string{
		LabelComponent:       component,
		LabelParentGroup:     lsv1alpha1.SchemeGroupVersion.Group,
		LabelParentVersion:   lsv1alpha1.SchemeGroupVersion.Version,
		LabelParentPlural:    parentPlural,
		LabelParentNamespace: item.Namespace,
		LabelParentName:      item.Name,
		LabelParentUID:       string(item.UID),
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

// Selector selects the objects of a component of a deploy item, regardless of their names. If instance is empty, it
// selects all instances, and if component is empty, all components.
func Selector(item types.UID, component, instance string) labels.Selector {
	set := labels.Set{LabelParentUID: labelValue(string(item))}
	if component != "" {
		set[LabelComponent] = labelValue(component)
	}
	if instance != "" {
		set[LabelInstance] = labelValue(instance)
	}
	return set.AsSelector()
}

// These are lengths in characters.
const (
	maxLabel   = 63
	hashLength = 10
)

// labelValue returns value, or a replacement if it cannot be the value of a label.
func labelValue(value string) string {
	if isLabelValue(value) {
		return value
	}
	return readable(value, maxLabel-1-hashLength) + "-" + hash(value)
}

// isLabelValue is validation.IsValidLabelValue without a regular expression. Each run calls it several times per
// object.
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

// readable returns the beginning of a text, with "-" for all that may not be part of a name, and a letter or digit at
// both ends. It is never empty.
func readable(text string, length int) string {
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

// base32Lower uses only characters that a name may contain.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hash returns a short hash of texts, with 50 bits.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return base32Lower.EncodeToString(h.Sum(nil))[:hashLength]
}

// nameFor returns the name of an object that has none. It is the same in each run, and different for each item,
// component and instance. generateName is never sent to the API server, because after a crash objects would exist that
// are in no inventory.
func (n *Node) nameFor(prefix string) string {
	if prefix == "" {
		prefix = n.component
	}
	return readable(strings.ToLower(prefix), maxLabel-1-hashLength) + "-" + hash(string(n.run.item.UID), n.component, n.instance)
}

// identify gives objects of the node their labels, and a name to those that have none. It replaces lists by their
// items. It changes the objects of its argument.
func (n *Node) identify(desired []apply.Desired) ([]apply.Desired, error) {
	out := make([]apply.Desired, 0, len(desired))
	for _, d := range desired {
		switch {
		case d.Object == nil:
			continue // the item has no such object
		case d.Object.IsList():
			items, err := n.identify(itemsOf(d))
			if err != nil {
				return nil, err
			}
			out = append(out, items...)
		default:
			if err := n.mark(d.Object); err != nil {
				return nil, err
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// itemsOf returns the items of a list.
func itemsOf(list apply.Desired) []apply.Desired {
	var out []apply.Desired
	items, _ := list.Object.Object["items"].([]any)
	for _, item := range items {
		body, _ := item.(map[string]any)
		single := list
		single.Object = &unstructured.Unstructured{Object: body}
		out = append(out, single)
	}
	return out
}

// mark sets the labels of one object, and its name.
func (n *Node) mark(obj *unstructured.Unstructured) error {
	if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
		return fmt.Errorf("an object %q has no apiVersion or no kind", obj.GetName())
	}
	if obj.GetName() == "" {
		obj.SetName(n.nameFor(strings.TrimSuffix(obj.GetGenerateName(), "-")))
		obj.SetGenerateName("")
	}
	ours, full := Identity(n.run.item, n.component, n.instance)
	set := obj.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if value, reserved := ours[key]; reserved && value != set[key] {
			return fmt.Errorf("%s has the label %s=%s, which the library sets", apply.RefOf(obj), key, set[key])
		}
	}
	obj.SetLabels(merged(set, ours))
	if len(full) > 0 {
		obj.SetAnnotations(merged(obj.GetAnnotations(), full))
	}
	return nil
}

// merged adds entries to a map that may be nil.
func merged(into, more map[string]string) map[string]string {
	if into == nil {
		into = make(map[string]string, len(more))
	}
	maps.Copy(into, more)
	return into
}

// instanceOf returns the instance that an object of a component belongs to.
func instanceOf(obj *unstructured.Unstructured) string {
	if full, found := obj.GetAnnotations()[LabelInstance]; found {
		return full
	}
	return obj.GetLabels()[LabelInstance]
}
