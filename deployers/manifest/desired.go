// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

// Desired converts the manifests to the input of the apply engine. It returns one entry per object, in the item's
// order. The items of a list follow each other, and a repeated object is returned once. The error is a
// deployerlib.ConfigError with the path of the manifest, which Decode would have found.
func (c *Config) Desired() ([]apply.Desired, error) {
	var out []apply.Desired
	for i := range c.Manifests {
		m := &c.Manifests[i]
		one := apply.Desired{
			Policy: apply.Policy(m.Policy), Strategy: apply.Strategy(c.Strategy),
			AnnotateBeforeCreate: m.AnnotateBeforeCreate, AnnotateBeforeDelete: m.AnnotateBeforeDelete,
		}
		var err error
		if one.PatchAfterDeployment, err = optionalObject(m.PatchAfterDeployment); err == nil {
			one.PatchBeforeDelete, err = optionalObject(m.PatchBeforeDelete)
		}
		if err != nil {
			return nil, fault(fmt.Sprintf("manifests[%d]", i), "%s", err.Error())
		}
		objects, err := Expand(m.Manifest)
		if err != nil {
			return nil, fault(fmt.Sprintf("manifests[%d].manifest", i), "%s", err.Error())
		}
		for _, one.Object = range objects {
			out = append(out, one)
		}
	}
	return once(out), nil
}

// once leaves out repeated objects. Decode accepts an object twice if both mean the same, or if one of them has the
// policy ignore.
func once(desired []apply.Desired) []apply.Desired {
	wanted := map[identity]bool{}
	for _, d := range desired {
		wanted[identityOf(d.Object)] = wanted[identityOf(d.Object)] || d.Policy != apply.Ignore
	}
	taken := map[identity]bool{}
	return slices.DeleteFunc(desired, func(d apply.Desired) bool {
		id := identityOf(d.Object)
		if taken[id] || d.Policy == apply.Ignore && wanted[id] {
			return true
		}
		taken[id] = true
		return false
	})
}

func identityOf(obj *unstructured.Unstructured) identity {
	return identity{group: obj.GroupVersionKind().Group, kind: obj.GetKind(), namespace: obj.GetNamespace(), name: obj.GetName()}
}
