// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func newTestError(codes ...lsv1alpha1.ErrorCode) *lsv1alpha1.Error {
	return &lsv1alpha1.Error{Operation: "Reconcile", Reason: "R", Message: "boom", Codes: codes, LastTransitionTime: metaAfterMinutes(0), LastUpdateTime: metaAfterMinutes(0)}
}

func newWaitingCondition(minutes int, message string) lsv1alpha1.Condition {
	c := newCondition(contract.ConditionWaiting, lsv1alpha1.ConditionTrue, minutes)
	c.Reason, c.Message = "Waiting", message
	return c
}

func TestApply(t *testing.T) {
	t.Parallel()
	succeeded := contract.Outcome{Phase: phSucceeded, Final: true, Done: true}
	failed := contract.Outcome{Phase: phFailed, Final: true, Err: newTestError()}
	retry := contract.Outcome{Err: newTestError()}
	type status = lsv1alpha1.DeployItemStatus
	waits := func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = []lsv1alpha1.Condition{newCondition("Theirs", "True", -3), newWaitingCondition(-3, "pods")}
	}
	theirs := []lsv1alpha1.Condition{newCondition("Theirs", "True", -3)}
	pending := withJob("b", "a", -6)
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		o    contract.Outcome
		want func(*status)
	}{
		"successful job sets phase and jobIDFinished [C10]": {newStartedItem(phProgressing, pending, withOldErrors, waits), succeeded, func(s *status) {
			s.Phase, s.JobIDFinished, s.LastError, s.Conditions = phSucceeded, "b", nil, theirs
			s.TransitionTimes = &lsv1alpha1.TransitionTimes{FinishedTime: ptrAfterMinutes(0)}
		}},
		"failed job sets phase and jobIDFinished [C10]": {newStartedItem(phProgressing, pending, waits), failed, func(s *status) {
			s.Phase, s.JobIDFinished, s.Conditions = phFailed, "b", theirs
			s.LastError, s.FirstError, s.LastErrors = newTestError(), newTestError(), []*lsv1alpha1.Error{newTestError()}
			s.TransitionTimes = &lsv1alpha1.TransitionTimes{FinishedTime: ptrAfterMinutes(0)}
		}},
		"job that is retried": {newStartedItem(phProgressing, pending), retry, func(s *status) {
			s.LastError, s.FirstError, s.LastErrors = newTestError(), newTestError(), []*lsv1alpha1.Error{newTestError()}
		}},
		"job that waits [C9]": {newStartedItem(phInit, pending, withOldErrors), contract.Outcome{Phase: phProgressing, Waiting: true, Message: "pods\nof x"}, func(s *status) {
			s.Phase, s.LastError = phProgressing, nil
			s.Conditions = []lsv1alpha1.Condition{newWaitingCondition(0, "pods; of x")}
		}},
		"job that waits without a message": {newStartedItem(phInit, pending), contract.Outcome{Waiting: true}, func(s *status) {
			s.Conditions = []lsv1alpha1.Condition{newWaitingCondition(0, "the deployer is not done yet")}
		}},
		"successful annotation run [C10]": {newStartedItem(phProgressing, withOldErrors), succeeded, func(s *status) {
			s.Phase, s.LastError = phSucceeded, nil
		}},
		"failed annotation run has no error history [C10]": {newStartedItem(phProgressing), failed, func(s *status) {
			s.Phase, s.LastError = phFailed, newTestError()
		}},
		"failed deletion under the annotation revision has the phase Failed [C10]": {newStartedItem(phDeleting, withDeletionTime(-6), withFinalizer), contract.Outcome{Phase: phDeleteFailed, Final: true, Err: newTestError()}, func(s *status) {
			s.Phase, s.LastError = phFailed, newTestError()
		}},
		"deletion under the annotation revision does not have the phase InitDelete [C9]": {newStartedItem(phProgressing, withDeletionTime(-6), withFinalizer), contract.Outcome{Phase: phInitDelete, Waiting: true, Message: "x"}, func(s *status) {
			s.Phase, s.Conditions = phInit, []lsv1alpha1.Condition{newWaitingCondition(0, "x")}
		}},
		"final outcome without a final phase": {newStartedItem(phProgressing, pending), contract.Outcome{Phase: phProgressing, Final: true, Err: newTestError()}, func(s *status) {
			s.Phase, s.JobIDFinished = phFailed, "b"
			s.LastError, s.FirstError, s.LastErrors = newTestError(), newTestError(), []*lsv1alpha1.Error{newTestError()}
			s.TransitionTimes = &lsv1alpha1.TransitionTimes{FinishedTime: ptrAfterMinutes(0)}
		}},
		"final outcome without a phase": {newStartedItem(phProgressing, pending), contract.Outcome{Final: true}, func(s *status) {
			s.Phase, s.JobIDFinished = phSucceeded, "b"
			s.TransitionTimes = &lsv1alpha1.TransitionTimes{FinishedTime: ptrAfterMinutes(0)}
		}},
		"outcome with a final phase that is not final": {newStartedItem(phProgressing, pending), contract.Outcome{Phase: phSucceeded}, func(*status) {}},
		"finished deletion keeps the phase":            {newStartedItem(phDeleting, pending, withDeletionTime(-1), withFinalizer), contract.Outcome{Done: true}, func(*status) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := contract.Evaluate(tc.di, newOptions())
			want, before := tc.di.DeepCopy(), tc.di.Status.DeepCopy()
			tc.want(&want.Status)
			contract.ApplyOutcome(tc.di, d, tc.o, epoch, afterMinutes(-1))
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			masked := tc.di.Status.DeepCopy()
			contract.RevertForbiddenChanges(d.Revision, before, masked)
			if diff := cmp.Diff(&tc.di.Status, masked); diff != "" {
				t.Errorf("changes fields that are not in the list of allowed fields: %s", diff)
			}
		})
	}
	contract.ApplyOutcome(nil, contract.Decision{}, succeeded, epoch, epoch)
}

func TestApplyBackground(t *testing.T) {
	t.Parallel()
	done := withJob("a", "a", -9)
	state := func(s lsv1alpha1.ConditionStatus, reason, message string, since, updated int, codes ...lsv1alpha1.ErrorCode) []lsv1alpha1.Condition {
		c := newCondition(contract.ConditionBackground, s, since)
		c.Reason, c.Message, c.Codes, c.LastUpdateTime = reason, message, codes, metaAfterMinutes(updated)
		return []lsv1alpha1.Condition{c}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		o    contract.Outcome
		want []lsv1alpha1.Condition
	}{
		"first success":            {newStartedItem(phSucceeded, done), contract.Outcome{Phase: phSucceeded, Final: true, Done: true}, state("False", "Succeeded", "the last background run succeeded", 0, 0)},
		"success after failures":   {newStartedItem(phSucceeded, done, withPendingBackground(-7)), contract.Outcome{Phase: phSucceeded, Final: true, Done: true}, state("False", "Succeeded", "the last background run succeeded", 0, 0)},
		"failure":                  {newStartedItem(phSucceeded, done), contract.Outcome{Err: newTestError("X")}, state("True", "Failed", "boom", 0, 0, "X")},
		"failure after a failure":  {newStartedItem(phSucceeded, done, withPendingBackground(-7)), contract.Outcome{Err: newTestError()}, state("True", "Failed", "boom", -7, 0)},
		"waits":                    {newStartedItem(phSucceeded, done, withPendingBackground(-7)), contract.Outcome{Phase: phProgressing, Waiting: true, Message: "pods"}, state("True", "Waiting", "pods", -7, 0)},
		"unrecoverable":            {newStartedItem(phSucceeded, done, withPendingBackground(-7)), contract.Outcome{Phase: phFailed, Final: true, Err: newTestError("X")}, state("False", "Failed", "boom", 0, 0, "X")},
		"deadline":                 {newStartedItem(phSucceeded, done, withPendingBackground(-10)), contract.EndedByLibrary(contract.RevisionJobID, false, contract.NewTimeoutError(newTestError(), contract.DefaultTimeout, epoch)), state("False", "TimedOut", "not finished within 10m0s; last error: boom", 0, 0, "ERR_TIMEOUT")},
		"success of a failed item": {newStartedItem(phFailed, done, withOldErrors), contract.Outcome{Phase: phSucceeded, Final: true, Done: true}, state("False", "Succeeded", "the last background run succeeded", 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := contract.Evaluate(tc.di, newJobOptions()).Force()
			want := tc.di.DeepCopy()
			want.Status.Conditions = tc.want
			want.Status.LastReconcileTime = ptrAfterMinutes(-1)
			contract.ApplyOutcome(tc.di, d, tc.o, epoch, afterMinutes(-1))
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("phase, job IDs and lastError stay: -want +got\n%s", diff)
			}
			owes := tc.want[0].Status == lsv1alpha1.ConditionTrue
			if again := contract.Evaluate(tc.di, newJobOptions()); again.Due != owes || (owes && !again.Background) {
				t.Errorf("owed %t, but %+v", owes, again)
			}
		})
	}
}

// TestApplyFinalWithoutPhase checks that Apply chooses the right final phase if a final outcome does not contain one.
func TestApplyFinalWithoutPhase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		o    contract.Outcome
		want phase
	}{
		"failed job [C10]":                                   {newStartedItem(phInit, withJob("b", "a", -6)), contract.Outcome{Final: true, Err: newTestError()}, phFailed},
		"successful job [C10]":                               {newStartedItem(phInit, withJob("b", "a", -6)), contract.Outcome{Final: true}, phSucceeded},
		"failed deletion by a job [C10]":                     {newStartedItem(phInitDelete, withJob("b", "a", -6), withFinalizer, withDeletionTime(-6)), contract.Outcome{Final: true, Err: newTestError()}, phDeleteFailed},
		"failed deletion under the annotation revision [C4]": {newStartedItem(phInit, withFinalizer, withDeletionTime(-6)), contract.Outcome{Final: true, Err: newTestError()}, phFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract.ApplyOutcome(tc.di, contract.Evaluate(tc.di, newOptions()), tc.o, epoch, epoch)
			if s := tc.di.Status; s.Phase != tc.want || s.JobIDFinished != s.JobID {
				t.Errorf("phase %s, want %s; finished %q of %q", s.Phase, tc.want, s.JobIDFinished, s.JobID)
			}
		})
	}
}

// TestApplyDoesNotChangeCopies checks that Apply does not change a shallow copy of the status that was made
// before. The copy and the status share their pointers.
func TestApplyDoesNotChangeCopies(t *testing.T) {
	t.Parallel()
	di := newStartedItem(phProgressing, withJob("b", "a", -6))
	di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(-5)}
	shared := di.Status
	before := shared.DeepCopy()
	contract.ApplyOutcome(di, contract.Evaluate(di, newOptions()), contract.Outcome{Phase: phSucceeded, Final: true, Done: true}, epoch, epoch)
	if diff := cmp.Diff(before, &shared); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if di.Status.TransitionTimes.FinishedTime.IsZero() {
		t.Error("no finishedTime")
	}
}
