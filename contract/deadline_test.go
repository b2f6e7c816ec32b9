// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		di      *lsv1alpha1.DeployItem
		want    time.Duration
		limited bool
	}{
		"nil":                           {nil, 10 * time.Minute, true},
		"default":                       {item(), 10 * time.Minute, true},
		"timeout of the spec":           {item(timeout(time.Hour)), time.Hour, true},
		"timeout zero means none [H-2]": {item(timeout(0)), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, limited, err := contract.Timeout(tc.di); got != tc.want || limited != tc.limited || err != nil {
				t.Errorf("%s %t %v", got, limited, err)
			}
		})
	}
	_, _, err := contract.Timeout(item(timeout(-time.Second)))
	if diff := cmp.Diff(codes{lsv1alpha1.ErrorConfigurationProblem}, contract.Codes(err)); diff != "" {
		t.Errorf("negative: %v %s", err, diff)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	initTime := func(di *lsv1alpha1.DeployItem) {
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: mt(-4)}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		d    contract.Decision
		want time.Time
	}{
		"annotation":                        {ran(phInit, initTime), contract.Decision{Revision: contract.RevisionAnnotation}, at(5)},
		"job":                               {ran(phInit, initTime), contract.Decision{Revision: contract.RevisionJobID}, at(6)},
		"job without init time":             {ran(phInit), contract.Decision{Revision: contract.RevisionJobID}, at(5)},
		"timeout of the spec":               {ran(phInit, timeout(time.Minute)), contract.Decision{Revision: contract.RevisionAnnotation}, at(-4)},
		"timeout zero means none [H-2]":     {ran(phInit, timeout(0)), contract.Decision{Revision: contract.RevisionAnnotation}, time.Time{}},
		"negative":                          {ran(phInit, timeout(-1)), contract.Decision{Revision: contract.RevisionAnnotation}, time.Time{}},
		"item without any time [C-11]":      {item(), contract.Decision{Revision: contract.RevisionJobID}, time.Time{}},
		"nil":                               {nil, contract.Decision{}, time.Time{}},
		"pending background run":            {ran(phSucceeded, owed(-2)), contract.Decision{Revision: contract.RevisionJobID, Background: true}, at(8)},
		"first attempt of a background run": {ran(phSucceeded), contract.Decision{Revision: contract.RevisionJobID, Background: true}, time.Time{}},
		"background run that is not pending": {ran(phSucceeded, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{cond(contract.ConditionBackground, "False", -2)}
		}), contract.Decision{Background: true}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := contract.Deadline(tc.di, tc.d)
			if !got.Equal(tc.want) || ok == tc.want.IsZero() {
				t.Errorf("%s %t, want %s", got, ok, tc.want)
			}
		})
	}
}

func TestAbortDeadline(t *testing.T) {
	t.Parallel()
	asked := func(minutes int) mod { return note(keyAbort, at(minutes).Format(time.RFC3339)) }
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want time.Time
	}{
		"no item (the argument is nil)":           {nil, at(5)},
		"item without abort-time [C6]":            {ran(phProgressing), at(5)},
		"abort-time before the pickup":            {ran(phProgressing, asked(-2)), at(3)},
		"abort-time that was changed later [C-9]": {ran(phProgressing, asked(2)), at(5)},
		"invalid abort-time":                      {ran(phProgressing, note(keyAbort, "soon")), at(5)},
		"abort-time of an earlier run":            {ran(phProgressing, asked(-60)), at(5)},
		"item without a run":                      {item(asked(-2)), at(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.AbortDeadline(tc.di, epoch); !got.Equal(tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestTimeoutErrors(t *testing.T) {
	t.Parallel()
	cause := boom()
	for name, tc := range map[string]struct {
		got  *lsv1alpha1.Error
		want lsv1alpha1.Error
	}{
		"timeout of a run":                    {contract.TimeoutError(nil, time.Minute, epoch), lsv1alpha1.Error{Operation: "WaitingForCompletion", Reason: "ProgressingTimeout", Message: "not finished within 1m0s"}},
		"timeout of a run that failed before": {contract.TimeoutError(cause, time.Minute, epoch), lsv1alpha1.Error{Operation: "WaitingForCompletion", Reason: "ProgressingTimeout", Message: "not finished within 1m0s; last error: boom"}},
		"timeout of an abort":                 {contract.AbortTimeoutError(cause, epoch), lsv1alpha1.Error{Operation: "WaitingForAbort", Reason: "AbortingTimeout", Message: "not aborted in time; last error: boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Codes = codes{lsv1alpha1.ErrorTimeout}
			tc.want.LastTransitionTime, tc.want.LastUpdateTime = val(0), val(0)
			if diff := cmp.Diff(&tc.want, tc.got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	cause.Message = strings.Repeat("x", 2000)
	if got := contract.TimeoutError(cause, time.Minute, epoch).Message; len(got) > 1024 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestFailingRunEndsAtDeadline checks that a run whose deployer always fails ends at its deadline [H-3].
func TestFailingRunEndsAtDeadline(t *testing.T) {
	t.Parallel()
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"job [H-3]":                               item(job("a", "", 0)),
		"job that deletes [H-3]":                  ran(phSucceeded, job("b", "a", 0), deleted(-1), finalizer),
		"annotation [H-3]":                        item(),
		"annotation that deletes [H-3]":           ran(phSucceeded, deleted(-1), finalizer, generation(4)),
		"force-reconcile before a deletion [H-3]": ran(phSucceeded, deleted(-1), finalizer, generation(4), op("force-reconcile")),
		"background run [H-3]":                    ran(phSucceeded, job("a", "a", -9), op("force-reconcile")),
		"annotation run without any time [C-11]":  item(phased(phProgressing), observed(3)),
		"job without any time [C-11]":             item(phased(phProgressing), observed(3), job("a", "", 0), func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }),
		"Landscaper's clock is ahead [C-11]":      item(job("a", "", 3)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts, now := 0, epoch
			for range 60 {
				d := contract.Evaluate(di, contract.Options{Now: now})
				if d.Expired {
					if starts > 1 {
						t.Errorf("%d starts", starts)
					}
					return
				}
				if d.New {
					starts++
					contract.Start(di, d, contract.StartInfo{Now: now})
				}
				o := contract.Judge(contract.CallResult{Revision: d.Revision, Action: d.Action, Deleting: di.DeletionTimestamp != nil, Err: errBoom, Now: now})
				contract.Apply(di, d, o, now, now)
				now = now.Add(time.Minute)
			}
			t.Error("never expired")
		})
	}
}
