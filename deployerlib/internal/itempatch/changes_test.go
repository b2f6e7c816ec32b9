// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// TestChangesApplyToFreshItem checks that changes can be applied to a newer version of the item, and that Diff can
// compare the result with that version.
func TestChangesApplyToFreshItem(t *testing.T) {
	wanted := newItem(changeBoth, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "job" })
	changes := mustDiff(t, newItem(), wanted)
	version := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }
	cases := map[string]struct {
		reason           string
		fresh            *lsv1alpha1.DeployItem
		metadata, status string
	}{
		"changes of other clients are kept": {
			"only our keys travel",
			newItem(version, func(di *lsv1alpha1.DeployItem) {
				di.Labels = map[string]string{"foreign": "1"}
				di.Status.JobID = "job"
			}),
			`{"metadata":{"labels":{"new":"1"},"resourceVersion":"9"}}`,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job","phase":"Init"}}`,
		},
		"changes that are already stored are omitted [Kx3]": {
			"what was applied is not applied again",
			newItem(version, changeBoth),
			``,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.fresh.DeepCopy()
			made, err := changes.ApplyTo(tc.fresh)
			if err != nil {
				t.Fatalf("On: %v", err)
			}
			got := mustDiff(t, tc.fresh, made)
			expectJSON(t, tc.reason+": metadata", tc.metadata, encodeMetadata(t, got))
			expectJSON(t, tc.reason+": status", tc.status, encodeStatus(t, got))
			assertUnchanged(t, before, tc.fresh)
		})
	}
}

// TestChangesApplyToAnotherVersion checks that On returns an object with the resourceVersion of its argument, not with
// the resourceVersion of the object from which the changes were computed.
func TestChangesApplyToAnotherVersion(t *testing.T) {
	wanted := newItem(changeBoth)
	changes := mustDiff(t, newItem(), wanted)
	out, err := changes.ApplyTo(newItem(func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }))
	if err != nil || out.GetResourceVersion() != "9" || out.GetLabels()["new"] != "1" {
		t.Errorf("On() = %v, %v", out, err)
	}
}
