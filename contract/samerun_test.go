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
		"nil":                             {nil, mine, jobRun, false},
		"nil of mine":                     {mine, nil, jobRun, false},
		"job, unfinished":                 {ran(phProgressing, job("b", "a", -6)), mine, jobRun, true},
		"job, interrupted":                {ran(phFailed, job("b", "b", -6)), mine, jobRun, false},
		"job, another one":                {ran(phFailed, job("c", "b", -1)), mine, jobRun, false},
		"job, re-created item":            {ran(phProgressing, job("b", "a", -6), other), mine, jobRun, false},
		"fresh job, before its start":     {ran(phSucceeded, job("a", "a", -6)), ran(phInit, job("fresh", "a", 0)), fresh, true},
		"fresh job, overtaken":            {ran(phSucceeded, job("c", "a", -1)), ran(phInit, job("fresh", "a", 0)), fresh, false},
		"fresh job, finish":               {ran(phInit, job("fresh", "a", 0)), ran(phSucceeded, job("fresh", "fresh", 0)), fresh, true},
		"fresh job, finished elsewhere":   {ran(phInit, job("fresh", "fresh", 0)), ran(phSucceeded, job("fresh", "fresh", 0)), fresh, false},
		"background":                      {ran(phSucceeded, job("a", "a", -6)), ran(phSucceeded, job("a", "a", -6)), backgroundRun, true},
		"background, new job":             {ran(phSucceeded, job("b", "a", 0)), ran(phSucceeded, job("a", "a", -6)), backgroundRun, false},
		"annotation":                      {ran(phProgressing), ran(phSucceeded), classic, true},
		"annotation, ended by Landscaper": {ran(phFailed), ran(phSucceeded), classic, false},
		"annotation, begun again":         {ran(phInit, reconciled(-1)), ran(phSucceeded), classic, false},
		"annotation, no times [C-11]":     {item(phased(phInit)), item(phased(phSucceeded)), classic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.SameRun(tc.stored, tc.mine, tc.d); got != tc.want {
				t.Errorf("SameRun() = %t", got)
			}
		})
	}
}
