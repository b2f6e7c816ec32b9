// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

// TestManifestDeterminesAdoption checks what follows from the Adoption of an object that existed before.
func TestManifestDeterminesAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		kind              string
		adoption          Adoption
		options           Options
		refused, released bool
	}{
		"an object with the adoption always belongs to the item [F29]":             {kind: "ConfigMap", adoption: AdoptionAlways},
		"an object with the adoption ifUnowned is released [F29]":                  {kind: "ConfigMap", adoption: AdoptionIfUnowned, released: true},
		"an object with the adoption never is released [F29]":                      {kind: "ConfigMap", adoption: AdoptionNever, released: true},
		"an object with the adoption never is refused if the options say so [F29]": {kind: "ConfigMap", adoption: AdoptionNever, options: Options{RefuseUnowned: true}, refused: true, released: true},
		"an object with the adoption ifUnowned is not refused [F29]":               {kind: "ConfigMap", adoption: AdoptionIfUnowned, options: Options{RefuseUnowned: true}, released: true},
		"an object has the adoption of the options by default [F29]":               {kind: "ConfigMap", options: Options{Adoption: AdoptionAlways}},
		"an object of a kind with data has the adoption never by default [F29]":    {kind: "Namespace", options: Options{RefuseUnowned: true}, refused: true, released: true},
		"an object of another kind has the adoption ifUnowned by default [F29]":    {kind: "ConfigMap", options: Options{RefuseUnowned: true}, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &desiredObject{Desired: Desired{Adoption: tc.adoption, Strategy: StrategyApply}, ref: Ref{APIVersion: "v1", Kind: tc.kind}}
			got := o.manifest(&tc.options)
			if got.RejectUnowned != tc.refused || got.ReleaseAdopted != tc.released {
				t.Errorf("refused %t, released %t, want %t and %t", got.RejectUnowned, got.ReleaseAdopted, tc.refused, tc.released)
			}
		})
	}
}
