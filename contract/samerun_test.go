// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func TestIsSameRun(t *testing.T) {
	t.Parallel()
	jobRun := contract.Decision{Revision: contract.RevisionJobID}
	fresh := contract.Decision{Revision: contract.RevisionJobID, NewJob: true}
	backgroundRun := contract.Decision{Revision: contract.RevisionJobID, Background: true}
	classic := contract.Decision{Revision: contract.RevisionAnnotation}
	other := func(di *lsv1alpha1.DeployItem) { di.UID = "other" }
	mine := newStartedItem(phSucceeded, withJob("b", "b", -6))
	for name, tc := range map[string]struct {
		stored, mine *lsv1alpha1.DeployItem
		d            contract.Decision
		want         bool
	}{
		"nil as the current item":                          {nil, mine, jobRun, false},
		"nil as the earlier item":                          {mine, nil, jobRun, false},
		"unfinished job":                                   {newStartedItem(phProgressing, withJob("b", "a", -6)), mine, jobRun, true},
		"interrupted job":                                  {newStartedItem(phFailed, withJob("b", "b", -6)), mine, jobRun, false},
		"another job":                                      {newStartedItem(phFailed, withJob("c", "b", -1)), mine, jobRun, false},
		"job of a recreated item":                          {newStartedItem(phProgressing, withJob("b", "a", -6), other), mine, jobRun, false},
		"test-reconcile job before its start":              {newStartedItem(phSucceeded, withJob("a", "a", -6)), newStartedItem(phInit, withJob("fresh", "a", 0)), fresh, true},
		"test-reconcile job after another job was created": {newStartedItem(phSucceeded, withJob("c", "a", -1)), newStartedItem(phInit, withJob("fresh", "a", 0)), fresh, false},
		"test-reconcile job that finishes":                 {newStartedItem(phInit, withJob("fresh", "a", 0)), newStartedItem(phSucceeded, withJob("fresh", "fresh", 0)), fresh, true},
		"test-reconcile job that another process finished": {newStartedItem(phInit, withJob("fresh", "fresh", 0)), newStartedItem(phSucceeded, withJob("fresh", "fresh", 0)), fresh, false},
		"background run":                                   {newStartedItem(phSucceeded, withJob("a", "a", -6)), newStartedItem(phSucceeded, withJob("a", "a", -6)), backgroundRun, true},
		"background run after a new job":                   {newStartedItem(phSucceeded, withJob("b", "a", 0)), newStartedItem(phSucceeded, withJob("a", "a", -6)), backgroundRun, false},
		"annotation run":                                   {newStartedItem(phProgressing), newStartedItem(phSucceeded), classic, true},
		"annotation run that Landscaper ended":             {newStartedItem(phFailed), newStartedItem(phSucceeded), classic, false},
		"annotation run that was restarted":                {newStartedItem(phInit, withLastReconcileTime(-1)), newStartedItem(phSucceeded), classic, false},
		"annotation run without times [C-11]":              {newItem(withPhase(phInit)), newItem(withPhase(phSucceeded)), classic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.IsSameRun(tc.stored, tc.mine, tc.d); got != tc.want {
				t.Errorf("SameRun() = %t", got)
			}
		})
	}
}
