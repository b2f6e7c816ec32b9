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
		"default":                       {newItem(), 10 * time.Minute, true},
		"timeout of the spec":           {newItem(withTimeout(time.Hour)), time.Hour, true},
		"timeout zero means none [H-2]": {newItem(withTimeout(0)), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, limited, err := contract.Timeout(tc.di); got != tc.want || limited != tc.limited || err != nil {
				t.Errorf("%s %t %v", got, limited, err)
			}
		})
	}
	_, _, err := contract.Timeout(newItem(withTimeout(-time.Second)))
	if diff := cmp.Diff(errorCodes{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
		t.Errorf("negative: %v %s", err, diff)
	}
}

func TestRunDeadline(t *testing.T) {
	t.Parallel()
	initTime := func(di *lsv1alpha1.DeployItem) {
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(-4)}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		d    contract.Decision
		want time.Time
	}{
		"annotation":                        {newStartedItem(phInit, initTime), contract.Decision{Revision: contract.RevisionAnnotation}, afterMinutes(5)},
		"job":                               {newStartedItem(phInit, initTime), contract.Decision{Revision: contract.RevisionJobID}, afterMinutes(6)},
		"job without init time":             {newStartedItem(phInit), contract.Decision{Revision: contract.RevisionJobID}, afterMinutes(5)},
		"timeout of the spec":               {newStartedItem(phInit, withTimeout(time.Minute)), contract.Decision{Revision: contract.RevisionAnnotation}, afterMinutes(-4)},
		"timeout zero means none [H-2]":     {newStartedItem(phInit, withTimeout(0)), contract.Decision{Revision: contract.RevisionAnnotation}, time.Time{}},
		"negative":                          {newStartedItem(phInit, withTimeout(-1)), contract.Decision{Revision: contract.RevisionAnnotation}, time.Time{}},
		"item without any time [C-11]":      {newItem(), contract.Decision{Revision: contract.RevisionJobID}, time.Time{}},
		"nil":                               {nil, contract.Decision{}, time.Time{}},
		"pending background run":            {newStartedItem(phSucceeded, withPendingBackground(-2)), contract.Decision{Revision: contract.RevisionJobID, Background: true}, afterMinutes(8)},
		"first attempt of a background run": {newStartedItem(phSucceeded), contract.Decision{Revision: contract.RevisionJobID, Background: true}, time.Time{}},
		"background run that is not pending": {newStartedItem(phSucceeded, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, "False", -2)}
		}), contract.Decision{Background: true}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := contract.RunDeadline(tc.di, tc.d)
			if !got.Equal(tc.want) || ok == tc.want.IsZero() {
				t.Errorf("%s %t, want %s", got, ok, tc.want)
			}
		})
	}
}

func TestAbortDeadline(t *testing.T) {
	t.Parallel()
	asked := func(minutes int) itemOption {
		return withAnnotation(keyAbort, afterMinutes(minutes).Format(time.RFC3339))
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want time.Time
	}{
		"no item (the argument is nil)":           {nil, afterMinutes(5)},
		"item without abort-time [C6]":            {newStartedItem(phProgressing), afterMinutes(5)},
		"abort-time before the pickup":            {newStartedItem(phProgressing, asked(-2)), afterMinutes(3)},
		"abort-time that was changed later [C-9]": {newStartedItem(phProgressing, asked(2)), afterMinutes(5)},
		"invalid abort-time":                      {newStartedItem(phProgressing, withAnnotation(keyAbort, "soon")), afterMinutes(5)},
		"abort-time of an earlier run":            {newStartedItem(phProgressing, asked(-60)), afterMinutes(5)},
		"item without a run":                      {newItem(asked(-2)), afterMinutes(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.AbortDeadline(tc.di, epoch); !got.Equal(tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestNewTimeoutError(t *testing.T) {
	t.Parallel()
	cause := newTestError()
	for name, tc := range map[string]struct {
		got  *lsv1alpha1.Error
		want lsv1alpha1.Error
	}{
		"timeout of a run":                    {contract.NewTimeoutError(nil, time.Minute, epoch), lsv1alpha1.Error{Operation: "WaitingForCompletion", Reason: "ProgressingTimeout", Message: "not finished within 1m0s"}},
		"timeout of a run that failed before": {contract.NewTimeoutError(cause, time.Minute, epoch), lsv1alpha1.Error{Operation: "WaitingForCompletion", Reason: "ProgressingTimeout", Message: "not finished within 1m0s; last error: boom"}},
		"timeout of an abort":                 {contract.NewAbortTimeoutError(cause, epoch), lsv1alpha1.Error{Operation: "WaitingForAbort", Reason: "AbortingTimeout", Message: "not aborted in time; last error: boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Codes = errorCodes{lsv1alpha1.ErrorTimeout}
			tc.want.LastTransitionTime, tc.want.LastUpdateTime = metaAfterMinutes(0), metaAfterMinutes(0)
			if diff := cmp.Diff(&tc.want, tc.got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	cause.Message = strings.Repeat("x", 2000)
	if got := contract.NewTimeoutError(cause, time.Minute, epoch).Message; len(got) > 1024 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestFailingRunEndsAtDeadline checks that a run whose deployer always fails ends at its deadline [H-3].
func TestFailingRunEndsAtDeadline(t *testing.T) {
	t.Parallel()
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"job [H-3]":                               newItem(withJob("a", "", 0)),
		"job that deletes [H-3]":                  newStartedItem(phSucceeded, withJob("b", "a", 0), withDeletionTime(-1), withFinalizer),
		"annotation [H-3]":                        newItem(),
		"annotation that deletes [H-3]":           newStartedItem(phSucceeded, withDeletionTime(-1), withFinalizer, withGeneration(4)),
		"force-reconcile before a deletion [H-3]": newStartedItem(phSucceeded, withDeletionTime(-1), withFinalizer, withGeneration(4), withOperation("force-reconcile")),
		"background run [H-3]":                    newStartedItem(phSucceeded, withJob("a", "a", -9), withOperation("force-reconcile")),
		"annotation run without any time [C-11]":  newItem(withPhase(phProgressing), withObservedGeneration(3)),
		"job without any time [C-11]":             newItem(withPhase(phProgressing), withObservedGeneration(3), withJob("a", "", 0), func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }),
		"Landscaper's clock is ahead [C-11]":      newItem(withJob("a", "", 3)),
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
					contract.StartRun(di, d, contract.StartInfo{Now: now})
				}
				o := contract.DetermineOutcome(contract.CallResult{Revision: d.Revision, Action: d.Action, Deleting: di.DeletionTimestamp != nil, Err: errBoom, Now: now})
				contract.ApplyOutcome(di, d, o, now, now)
				now = now.Add(time.Minute)
			}
			t.Error("never expired")
		})
	}
}
