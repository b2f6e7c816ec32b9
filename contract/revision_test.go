// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func TestDetectRevision(t *testing.T) {
	t.Parallel()
	typed := withAnnotation(lsv1alpha1.DeployerTypeAnnotation, "x")
	cases := map[string]struct {
		reason string
		di     *lsv1alpha1.DeployItem
		want   contract.Revision
	}{
		"nil":                         {"nothing to see", nil, contract.RevisionAnnotation},
		"item without signs of a job": {"no sign of a job", newItem(), contract.RevisionAnnotation},
		"job ID":                      {"a job was handed out", newItem(withJob("a", "", 0)), contract.RevisionJobID},
		"deployer-type":               {"Landscaper marks its items", newItem(typed), contract.RevisionJobID},
		"finished item with the annotation deployer-type": {"no run to strand", newStartedItem(phSucceeded, typed), contract.RevisionJobID},
		"annotation deployer-type during a run":           {"an upgrade must not strand the run", newStartedItem(phProgressing, typed), contract.RevisionAnnotation},
		"job ID during a run":                             {"a job wins over everything", newStartedItem(phProgressing, withJob("a", "", 0)), contract.RevisionJobID},
		"unknown phase":                                   {"was never started", newStartedItem(phUnknown, typed), contract.RevisionJobID},
		"only a finished ID":                              {"nothing asks for a job", newItem(withJob("", "a", 0)), contract.RevisionAnnotation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.DetectRevision(tc.di); got != tc.want {
				t.Errorf("Detect() = %s, want %s: %s", got, tc.want, tc.reason)
			}
			if got := contract.Evaluate(tc.di, contract.Options{}).Revision; got != tc.want {
				t.Errorf("Evaluate().Revision = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestForcedRevision(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		di     *lsv1alpha1.DeployItem
		forced contract.Revision
		want   contract.Revision
	}{
		"annotation revision for an item with a job":                        {newItem(withJob("a", "", 0)), contract.RevisionAnnotation, contract.RevisionAnnotation},
		"job-ID revision for an item without a job":                         {newItem(), contract.RevisionJobID, contract.RevisionJobID},
		"job-ID revision during an annotation run":                          {newStartedItem(phInit), contract.RevisionJobID, contract.RevisionAnnotation},
		"unknown revision":                                                  {newItem(withJob("a", "", 0)), "other", "other"},
		"job-ID revision without an item":                                   {nil, contract.RevisionJobID, contract.RevisionJobID},
		"annotation revision for an item with the annotation deployer-type": {newItem(withAnnotation(lsv1alpha1.DeployerTypeAnnotation, "x")), contract.RevisionAnnotation, contract.RevisionAnnotation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(tc.di, contract.Options{Revision: tc.forced}).Revision; got != tc.want {
				t.Errorf("revision = %s, want %s", got, tc.want)
			}
		})
	}
}
