// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/deployerkit/deployerkit/contract"
)

// TestRevisions requires that the checks know all revisions, and tell them apart by the definitions of a cluster.
func TestRevisions(t *testing.T) {
	if got, want := len(features), len(contract.Revisions()); got != want {
		t.Errorf("%d revisions are known, want %d", got, want)
	}
	for _, revision := range contract.Revisions() {
		t.Run(string(revision)+" [F52]", func(t *testing.T) {
			f, known := features[revision]
			if !known {
				t.Fatal("the checks do not know it")
			}
			for _, crd := range f.definitions() {
				if crd.Name != deployItems {
					continue
				}
				if got := revisionOf(crd); got != revision {
					t.Errorf("its definitions are taken for those of revision %q", got)
				}
			}
		})
	}
}
