// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"github.com/deployerkit/deployerkit/apply"
)

// Desired converts the manifests to what the apply engine takes: one entry per
// object, in the item's order; the items of a list follow each other.
// Errors: a deployerlib.ConfigError with the path of the manifest, which Decode
// would have found.
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
	return out, nil
}
