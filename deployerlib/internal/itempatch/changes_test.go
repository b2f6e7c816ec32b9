// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// TestChangesOnFresh checks that changes can be applied to a newer version of the item, and that Diff can compare the
// result with that version.
func TestChangesOnFresh(t *testing.T) {
	wanted := item(both, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "job" })
	changes := mustDiff(t, item(), wanted)
	version := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }
	cases := map[string]struct {
		reason           string
		fresh            *lsv1alpha1.DeployItem
		metadata, status string
	}{
		"changes of other clients are kept": {
			"only our keys travel",
			item(version, func(di *lsv1alpha1.DeployItem) {
				di.Labels = map[string]string{"foreign": "1"}
				di.Status.JobID = "job"
			}),
			`{"metadata":{"labels":{"new":"1"},"resourceVersion":"9"}}`,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job","phase":"Init"}}`,
		},
		"changes that are already stored are omitted [Kx3]": {
			"what was applied is not applied again",
			item(version, both),
			``,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.fresh.DeepCopy()
			made, err := changes.On(tc.fresh)
			if err != nil {
				t.Fatalf("On: %v", err)
			}
			got := mustDiff(t, tc.fresh, made)
			wantJSON(t, tc.reason+": metadata", tc.metadata, metadataJSON(t, got))
			wantJSON(t, tc.reason+": status", tc.status, statusJSON(t, got))
			assertUntouched(t, before, tc.fresh)
		})
	}
}

// TestChangesOnAnotherVersion checks that On returns an object with the resourceVersion of its argument, not with the
// resourceVersion of the object from which the changes were computed.
func TestChangesOnAnotherVersion(t *testing.T) {
	wanted := item(both)
	changes := mustDiff(t, item(), wanted)
	out, err := changes.On(item(func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }))
	if err != nil || out.GetResourceVersion() != "9" || out.GetLabels()["new"] != "1" {
		t.Errorf("On() = %v, %v", out, err)
	}
}
