// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func TestSameRun(t *testing.T) {
	t.Parallel()
	jobRun := contract.Decision{Revision: contract.RevisionJobID}
	fresh := contract.Decision{Revision: contract.RevisionJobID, NewJob: true}
	backgroundRun := contract.Decision{Revision: contract.RevisionJobID, Background: true}
	classic := contract.Decision{Revision: contract.RevisionAnnotation}
	other := func(di *lsv1alpha1.DeployItem) { di.UID = "other" }
	mine := ran(phSucceeded, job("b", "b", -6))
	for name, tc := range map[string]struct {
		stored, mine *lsv1alpha1.DeployItem
		d            contract.Decision
		want         bool
	}{
		"nil as the current item":                          {nil, mine, jobRun, false},
		"nil as the earlier item":                          {mine, nil, jobRun, false},
		"unfinished job":                                   {ran(phProgressing, job("b", "a", -6)), mine, jobRun, true},
		"interrupted job":                                  {ran(phFailed, job("b", "b", -6)), mine, jobRun, false},
		"another job":                                      {ran(phFailed, job("c", "b", -1)), mine, jobRun, false},
		"job of a recreated item":                          {ran(phProgressing, job("b", "a", -6), other), mine, jobRun, false},
		"test-reconcile job before its start":              {ran(phSucceeded, job("a", "a", -6)), ran(phInit, job("fresh", "a", 0)), fresh, true},
		"test-reconcile job after another job was created": {ran(phSucceeded, job("c", "a", -1)), ran(phInit, job("fresh", "a", 0)), fresh, false},
		"test-reconcile job that finishes":                 {ran(phInit, job("fresh", "a", 0)), ran(phSucceeded, job("fresh", "fresh", 0)), fresh, true},
		"test-reconcile job that another process finished": {ran(phInit, job("fresh", "fresh", 0)), ran(phSucceeded, job("fresh", "fresh", 0)), fresh, false},
		"background run":                                   {ran(phSucceeded, job("a", "a", -6)), ran(phSucceeded, job("a", "a", -6)), backgroundRun, true},
		"background run after a new job":                   {ran(phSucceeded, job("b", "a", 0)), ran(phSucceeded, job("a", "a", -6)), backgroundRun, false},
		"annotation run":                                   {ran(phProgressing), ran(phSucceeded), classic, true},
		"annotation run that Landscaper ended":             {ran(phFailed), ran(phSucceeded), classic, false},
		"annotation run that was restarted":                {ran(phInit, reconciled(-1)), ran(phSucceeded), classic, false},
		"annotation run without times [C-11]":              {item(phased(phInit)), item(phased(phSucceeded)), classic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.SameRun(tc.stored, tc.mine, tc.d); got != tc.want {
				t.Errorf("SameRun() = %t", got)
			}
		})
	}
}
