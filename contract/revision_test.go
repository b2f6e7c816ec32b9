// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	typed := note(lsv1alpha1.DeployerTypeAnnotation, "x")
	cases := map[string]struct {
		reason string
		di     *lsv1alpha1.DeployItem
		want   contract.Revision
	}{
		"nil":                         {"nothing to see", nil, contract.RevisionAnnotation},
		"item without signs of a job": {"no sign of a job", item(), contract.RevisionAnnotation},
		"job ID":                      {"a job was handed out", item(job("a", "", 0)), contract.RevisionJobID},
		"deployer-type":               {"Landscaper marks its items", item(typed), contract.RevisionJobID},
		"finished item with the annotation deployer-type": {"no run to strand", ran(phSucceeded, typed), contract.RevisionJobID},
		"annotation deployer-type during a run":           {"an upgrade must not strand the run", ran(phProgressing, typed), contract.RevisionAnnotation},
		"job ID during a run":                             {"a job wins over everything", ran(phProgressing, job("a", "", 0)), contract.RevisionJobID},
		"unknown phase":                                   {"was never started", ran(phUnknown, typed), contract.RevisionJobID},
		"only a finished ID":                              {"nothing asks for a job", item(job("", "a", 0)), contract.RevisionAnnotation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Detect(tc.di); got != tc.want {
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
		"annotation revision for an item with a job":                        {item(job("a", "", 0)), contract.RevisionAnnotation, contract.RevisionAnnotation},
		"job-ID revision for an item without a job":                         {item(), contract.RevisionJobID, contract.RevisionJobID},
		"job-ID revision during an annotation run":                          {ran(phInit), contract.RevisionJobID, contract.RevisionAnnotation},
		"unknown revision":                                                  {item(job("a", "", 0)), "other", "other"},
		"job-ID revision without an item":                                   {nil, contract.RevisionJobID, contract.RevisionJobID},
		"annotation revision for an item with the annotation deployer-type": {item(note(lsv1alpha1.DeployerTypeAnnotation, "x")), contract.RevisionAnnotation, contract.RevisionAnnotation},
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
