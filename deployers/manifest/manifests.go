// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	sigsjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/lists"
)

// policies are the policies that a manifest may have.
var policies = []managedresource.ManifestPolicy{
	managedresource.ManagePolicy, managedresource.FallbackPolicy, managedresource.KeepPolicy,
	managedresource.IgnorePolicy, managedresource.ImmutablePolicy,
}

// Expand returns the objects of a manifest. If the manifest contains an array "items", it is a list, and Expand
// returns the items of this list and of the lists that it contains; otherwise it returns the manifest itself. Items
// without a kind and an API version get those of their list, as with kubectl. Expand returns an error if the manifest
// or an item is not a JSON object.
func Expand(manifest *runtime.RawExtension) ([]*unstructured.Unstructured, error) {
	items, err := expand(manifest)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, item := range items {
		objects = append(objects, &unstructured.Unstructured{Object: item.Body})
	}
	return objects, nil
}

// expand is like Expand and also returns the place of each object in the manifest.
func expand(manifest *runtime.RawExtension) ([]lists.Item, error) {
	object, err := decodeObject(manifest)
	if err != nil {
		return nil, err
	}
	return lists.Flatten(object, nil)
}

// decodeObject decodes a JSON object. It returns an error for a duplicate field.
func decodeObject(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, errors.New("required")
	}
	object := map[string]any{}
	twice, err := sigsjson.UnmarshalStrict(raw.Raw, &object)
	if err != nil || object == nil {
		return nil, errors.New("must be an object")
	}
	if len(twice) > 0 {
		return nil, twice[0]
	}
	return object, nil
}

// setManifests validates all manifests and sets their default policies.
func (c *Config) setManifests() error {
	seen := map[apply.Ref]objectPlace{}
	for i := range c.Manifests {
		m, at := &c.Manifests[i], fmt.Sprintf("manifests[%d]", i)
		m.Policy = cmp.Or(m.Policy, managedresource.ManagePolicy)
		if !slices.Contains(policies, m.Policy) {
			return newConfigError(at+".policy", "is %q, want one of %q", m.Policy, policies)
		}
		if err := checkManifest(at+".manifest", m, seen); err != nil {
			return err
		}
		if err := checkExtras(at, m); err != nil {
			return err
		}
	}
	return nil
}

// objectPlace is the location of an object in the configuration.
type objectPlace struct {
	path   string
	object map[string]any
}

// checkManifest validates a manifest and, if it is a list, all of its objects.
func checkManifest(at string, m *managedresource.Manifest, seen map[apply.Ref]objectPlace) error {
	items, err := expand(m.Manifest)
	if err != nil {
		return newConfigError(at, "%s", err.Error())
	}
	for _, item := range items {
		path, obj := at+item.Path, &unstructured.Unstructured{Object: item.Body}
		if err := checkObject(path, obj.Object); err != nil {
			return err
		}
		if m.Policy == managedresource.IgnorePolicy {
			continue
		}
		id := getVersionlessRef(obj)
		first, twice := seen[id]
		if twice && !reflect.DeepEqual(first.object, obj.Object) {
			return newConfigError(path, "describes %s again, with different content than %s", apply.ToRef(obj), first.path)
		}
		seen[id] = objectPlace{path: path, object: obj.Object}
	}
	return nil
}

// checkObject validates the fields that every object needs.
func checkObject(at string, object map[string]any) error {
	apiVersion, _ := object["apiVersion"].(string)
	if gv, err := schema.ParseGroupVersion(apiVersion); err != nil || gv.Version == "" {
		return newConfigError(at+".apiVersion", "is %s, want \"version\" or \"group/version\"", formatValue(object["apiVersion"]))
	}
	if kind, _ := object["kind"].(string); kind == "" {
		return newConfigError(at+".kind", "is %s, want the name of a kind", formatValue(object["kind"]))
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return newConfigError(at+".metadata", "required")
	}
	if err := checkName(at+".metadata.name", metadata["name"]); err != nil {
		return err
	}
	if namespace := metadata["namespace"]; namespace != nil && namespace != "" {
		if err := checkName(at+".metadata.namespace", namespace); err != nil {
			return err
		}
	}
	return checkMetadata(at+".metadata", metadata)
}

// checkName validates a name. The name becomes part of a URL.
func checkName(at string, value any) error {
	name, _ := value.(string)
	if name == "" {
		return newConfigError(at, "is %s, want a name (generated names are not supported)", formatValue(value))
	}
	if faults := content.IsPathSegmentName(name); len(faults) > 0 {
		return newConfigError(at, "%q %s", name, faults[0])
	}
	return nil
}

// checkMetadata validates labels and annotations. The values must be strings, and no key may have the library's own
// prefix.
func checkMetadata(at string, metadata map[string]any) error {
	for _, field := range []string{"labels", "annotations"} {
		values, ok := metadata[field].(map[string]any)
		if !ok && metadata[field] != nil {
			return newConfigError(at+"."+field, "must be an object")
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if err := checkEntry(at+"."+field, key, values[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEntry validates a label or an annotation. The value may be null, which removes the entry in a patch.
func checkEntry(at, key string, value any) error {
	if err := checkKey(at, key); err != nil {
		return err
	}
	if _, ok := value.(string); !ok && value != nil {
		return newConfigError(fmt.Sprintf("%s[%q]", at, key), "is %s, want a string", formatValue(value))
	}
	return nil
}

// checkKey validates the key of a label or an annotation. Like the API server, it accepts annotations with capital
// letters in the prefix.
func checkKey(at, key string) error {
	if ownership.IsReserved(key) {
		return newConfigError(at, "%q: the prefix %s is reserved", key, ownership.Prefix)
	}
	if faults := validation.IsQualifiedName(strings.ToLower(key)); len(faults) > 0 {
		return newConfigError(at, "%q %s", key, faults[0])
	}
	return nil
}

// checkExtras validates the annotations and patches of a manifest.
func checkExtras(at string, m *managedresource.Manifest) error {
	for _, key := range slices.Sorted(maps.Keys(m.AnnotateBeforeCreate)) {
		if err := checkKey(at+".annotateBeforeCreate", key); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.AnnotateBeforeDelete)) {
		if err := checkKey(at+".annotateBeforeDelete", key); err != nil {
			return err
		}
	}
	if err := checkPatch(at+".patchAfterDeployment", m.PatchAfterDeployment); err != nil {
		return err
	}
	return checkPatch(at+".patchBeforeDelete", m.PatchBeforeDelete)
}

// checkPatch validates a patch. It must be an object, and its labels and annotations must be valid as in a manifest.
func checkPatch(at string, raw *runtime.RawExtension) error {
	if raw == nil {
		return nil
	}
	patch, err := decodeObject(raw)
	if err != nil {
		return newConfigError(at, "%s", err.Error())
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok && patch["metadata"] != nil {
		return newConfigError(at+".metadata", "must be an object")
	}
	if err := checkMetadata(at+".metadata", metadata); err != nil {
		return err
	}
	if field := ownership.FindRemovedMark(patch); field != "" {
		return newConfigError(at+"."+field, "must not remove or replace the labels and annotations that identify the object's owner")
	}
	return nil
}

// formatValue formats a value for use in an error. It shows numbers, strings and booleans. For lists and objects, it
// shows only the type, because their content may be large or secret. A missing value becomes "missing".
func formatValue(value any) string {
	switch value.(type) {
	case nil:
		return "missing"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	raw, err := json.Marshal(value)
	if err != nil || len(raw) > 80 {
		return "something else"
	}
	return string(raw)
}
