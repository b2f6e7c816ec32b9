// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/patch"
)

func TestRebase(t *testing.T) {
	wanted := item(both, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "job" })
	changes := mustDiff(t, item(), wanted)
	version := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }
	cases := map[string]struct {
		reason           string
		fresh            *lsv1alpha1.DeployItem
		metadata, status string
	}{
		"foreign changes stay": {
			"only our keys travel",
			item(version, func(di *lsv1alpha1.DeployItem) {
				di.Labels = map[string]string{"foreign": "1"}
				di.Status.JobID = "job"
			}),
			`{"metadata":{"labels":{"new":"1"},"resourceVersion":"9"}}`,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job","phase":"Init"}}`,
		},
		"what is there already is left out [Kx3]": {
			"what was applied is not applied again",
			item(version, both),
			``,
			`{"metadata":{"resourceVersion":"9"},"status":{"jobIDFinished":"job"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.fresh.DeepCopy()
			got, err := changes.Rebase(tc.fresh)
			if err != nil {
				t.Fatalf("Rebase: %v", err)
			}
			wantJSON(t, tc.reason+": metadata", tc.metadata, got.Metadata)
			wantJSON(t, tc.reason+": status", tc.status, got.Status)
			assertUntouched(t, before, tc.fresh)
		})
	}
}

func TestRebaseFaults(t *testing.T) {
	good := mustDiff(t, item(), item(both))
	if _, err := good.Rebase(item(func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "" })); err == nil {
		t.Error("Rebase() onto an object without resourceVersion gives no error")
	}
	if _, err := (patch.Changes{Status: []byte(`[`)}).Rebase(item()); err == nil {
		t.Error("Rebase() of a broken patch gives no error")
	}
	if _, err := (patch.Changes{Metadata: []byte(`{"spec":{"type":"x"}}`)}).Rebase(item()); err == nil {
		t.Error("Rebase() of a patch of the spec gives no error")
	}
}

// The object that the changes were made on stays of its version: theirs is that of the object that they were computed from.
func TestChangesOnAnotherVersion(t *testing.T) {
	wanted := item(both)
	changes := mustDiff(t, item(), wanted)
	out, err := changes.On(item(func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "9" }))
	if err != nil || out.GetResourceVersion() != "9" || out.GetLabels()["new"] != "1" {
		t.Errorf("On() = %v, %v", out, err)
	}
}
