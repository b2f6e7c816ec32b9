// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

// ToDesired converts the manifests to the input of the apply engine. It returns one element for each object, in the
// order of the item's configuration. A list is replaced by its items, and a repeated object is returned once. The error
// is an error of deployerlib.NewConfigError with the path of the manifest. There is no error for a configuration that
// Decode returned.
func (c *Config) ToDesired() ([]apply.Desired, error) {
	var out []apply.Desired
	for i := range c.Manifests {
		m := &c.Manifests[i]
		one := apply.Desired{
			Policy: apply.Policy(m.Policy), Strategy: apply.Strategy(c.Strategy),
			AnnotateBeforeCreate: m.AnnotateBeforeCreate, AnnotateBeforeDelete: m.AnnotateBeforeDelete,
		}
		var err error
		if one.PatchAfterDeployment, err = decodeOptionalObject(m.PatchAfterDeployment); err == nil {
			one.PatchBeforeDelete, err = decodeOptionalObject(m.PatchBeforeDelete)
		}
		if err != nil {
			return nil, newConfigError(fmt.Sprintf("manifests[%d]", i), "%s", err.Error())
		}
		objects, err := Expand(m.Manifest)
		if err != nil {
			return nil, newConfigError(fmt.Sprintf("manifests[%d].manifest", i), "%s", err.Error())
		}
		for _, one.Object = range objects {
			out = append(out, one)
		}
	}
	return removeDuplicates(out), nil
}

// removeDuplicates removes repeated objects. Decode accepts the same object twice if both manifests have the same
// content, or if one of them has the policy "ignore".
func removeDuplicates(desired []apply.Desired) []apply.Desired {
	wanted := map[apply.Ref]bool{}
	for _, d := range desired {
		id := getVersionlessRef(d.Object)
		wanted[id] = wanted[id] || d.Policy != apply.PolicyIgnore
	}
	taken := map[apply.Ref]bool{}
	return slices.DeleteFunc(desired, func(d apply.Desired) bool {
		id := getVersionlessRef(d.Object)
		if taken[id] || d.Policy == apply.PolicyIgnore && wanted[id] {
			return true
		}
		taken[id] = true
		return false
	})
}

// getVersionlessRef returns a reference with the API group instead of the API version. The result is therefore the same
// for all versions of a kind.
func getVersionlessRef(obj *unstructured.Unstructured) apply.Ref {
	ref := apply.ToRef(obj)
	ref.APIVersion = ref.GVK().Group
	return ref
}

// decodeOptionalObject decodes a JSON object. It returns nil if there is none.
func decodeOptionalObject(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	return decodeObject(raw)
}
