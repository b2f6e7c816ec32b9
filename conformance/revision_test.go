// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/deployerkit/deployerkit/contract"
)

// TestRevisions checks that the map `features` contains all revisions. It also checks that revisionOf recognizes each
// revision by its definitions.
func TestRevisions(t *testing.T) {
	if got, want := len(features), len(contract.AllRevisions()); got != want {
		t.Errorf("got %d revisions, want %d", got, want)
	}
	for _, revision := range contract.AllRevisions() {
		t.Run(string(revision)+" [F52]", func(t *testing.T) {
			f, known := features[revision]
			if !known {
				t.Fatal("there are no features for this revision")
			}
			for _, crd := range f.definitions() {
				if crd.Name != deployItems {
					continue
				}
				if got := revisionOf(crd); got != revision {
					t.Errorf("revisionOf returned %q for the definitions of this revision", got)
				}
			}
		})
	}
}
