// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
)

// outcomeCase is a test case of the function `determineOutcome`. The function `change` changes the facts that
// newCallFacts returns.
type outcomeCase struct {
	reason string
	change func(*facts)
	want   string
}

// newJobItem returns an item with a job that is running.
func newJobItem() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.UID, di.ResourceVersion, di.Generation = "ns", "item", "uid", "7", 1
	di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	began := metav1.NewTime(moment)
	di.Status.JobID, di.Status.JobIDGenerationTime, di.Status.LastReconcileTime = "1", &began, &began
	di.Status.Phase, di.Status.ObservedGeneration = lsv1alpha1.DeployItemPhases.Init, 1
	return di
}

// newCallFacts returns the facts of a call in a job whose start is stored.
func newCallFacts() facts {
	read := newJobItem()
	working := read.DeepCopy()
	return facts{
		now: moment.Add(time.Minute), began: moment, start: contract.StartInfo{Now: moment},
		decision: contract.Decision{Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Due: true, RemoveAnnotations: []string{"a"}},
		read:     read, stored: read, working: working, started: true,
		call: callResult{called: true, outcome: &contract.Outcome{Phase: lsv1alpha1.DeployItemPhases.Succeeded, Final: true, Done: true}},
	}
}

// setFinishedFacts changes the parameter f to the facts of an attempt on a finished item.
func setFinishedFacts(f *facts) {
	f.read.Status.JobIDFinished, f.read.Status.Phase = "1", lsv1alpha1.DeployItemPhases.Succeeded
	f.working, f.call, f.started = f.read, callResult{}, false
	f.decision = contract.Decision{Revision: contract.RevisionJobID}
}

// formatOutcome returns one line with the fields of an outcome that the tests compare.
func formatOutcome(o attemptOutcome) string {
	parts := []string{[]string{"write", "failed", "superseded", "interrupted"}[o.kind]}
	note := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if s := o.status; s != nil {
		note(true, "phase=%s finished=%s", s.Phase, s.JobIDFinished)
		note(s.LastError != nil, "lastError=%s", getReason(s.LastError))
		if c := contract.GetCondition(s.Conditions, contract.ConditionBackground); c != nil {
			note(true, "background=%s/%s", c.Status, c.Reason)
		}
	}
	note(o.status != nil && o.status.ExportReference != nil, "export")
	note(o.metadata.RemoveFinalizer, "finalizer")
	note(len(o.metadata.RemoveAnnotations) > 0, "annotations=%s", strings.Join(o.metadata.RemoveAnnotations, ","))
	note(o.event != nil, "event=%s", getReason(o.event))
	note(o.err != nil, "err=%v", o.err)
	note(o.isRequired(), "keep")
	return strings.Join(parts, " ")
}

func getReason(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return e.Reason
}

func TestDetermineOutcome(t *testing.T) {
	t.Parallel()
	boom, secret := errors.New("boom"), apierrors.NewForbidden(lsv1alpha1.Resource("deployitems"), "item", errors.New("no"))
	failing := contract.NewError(boom, "Reconcile", "ReconcileFailed", moment)
	noCall := func(f *facts) { f.call, f.started = callResult{}, false }
	cancelled := func(cause error) func(*facts) {
		return func(f *facts) { f.call.outcome, f.cause = nil, cause }
	}
	deleting := func(f *facts) {
		f.decision.Action = contract.ActionDelete
		f.read.DeletionTimestamp = &metav1.Time{Time: moment}
	}
	background := func(f *facts) {
		setFinishedFacts(f)
		f.decision = contract.Decision{Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Due: true, Background: true}
		f.working, f.started = f.read.DeepCopy(), true
		f.call = callResult{called: true, outcome: &contract.Outcome{Done: true}}
	}
	both := func(changes ...func(*facts)) func(*facts) {
		return func(f *facts) {
			for _, c := range changes {
				c(f)
			}
		}
	}
	cases := map[string]outcomeCase{
		"Done":   {"the call returned nil", func(*facts) {}, "write phase=Succeeded finished=1 keep"},
		"Failed": {"an error is shown and tried again", func(f *facts) { f.call.outcome = &contract.Outcome{Err: failing} }, "write phase=Init finished= lastError=ReconcileFailed event=ReconcileFailed"},
		"FailedAgain": {"an event is about a new error only", func(f *facts) {
			f.call.outcome = &contract.Outcome{Err: failing}
			f.stored.Status.LastError = failing
		}, "write phase=Init finished= lastError=ReconcileFailed"},
		"Waits":    {"a wait is no failure", func(f *facts) { f.call.outcome = &contract.Outcome{Phase: "Progressing", Waiting: true} }, "write phase=Progressing finished="},
		"Consumed": {"the operation has had its effect", func(f *facts) { f.call.outcome.Consumed = true }, "write phase=Succeeded finished=1 annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " keep"},
		"Deleted":  {"the finalizer goes, and nothing else changes", both(deleting, func(f *facts) { f.call.outcome = &contract.Outcome{Done: true} }), "write phase=Init finished= finalizer keep"},
		"DeletedWithoutCall": {"a run that did not start leaves no trace", both(deleting, noCall, func(f *facts) {
			f.call.outcome, f.working.Status.Phase = &contract.Outcome{Done: true}, "Deleting"
		}), "write phase=Init finished= finalizer annotations=a"},

		"HookFails":        {"an error of a phase counts as one of the run", both(noCall, func(f *facts) { f.err = boom }), "write phase=Init finished= lastError=ReconcileFailed annotations=a event=ReconcileFailed err=boom"},
		"EndHookFails":     {"after a call too: the job is not finished", func(f *facts) { f.err = boom }, "write phase=Init finished= lastError=ReconcileFailed event=ReconcileFailed err=boom"},
		"HookFailsExpired": {"a hook that goes on failing does not keep the run alive", both(noCall, func(f *facts) { f.err, f.decision.Expired = boom, true }), "write phase=Failed finished=1 lastError=ProgressingTimeout annotations=a," + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " event=ProgressingTimeout err=boom"},
		"HookFailsAbortExpired": {"nor an abort", both(noCall, func(f *facts) {
			f.err, f.decision.Action, f.decision.RemoveAnnotations, f.abortDeadline = boom, contract.ActionAbort, nil, f.now
		}), "write phase=Failed finished=1 lastError=AbortingTimeout annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " event=AbortingTimeout err=boom"},
		"HookFailsNotDue": {"outside a run a hook's error is a condition", both(setFinishedFacts, func(f *facts) { f.err = boom }), "write phase=Succeeded finished=1 background=Unknown/HookFailed err=boom"},
		"HookRecovered": {"which goes when the hook recovers", both(setFinishedFacts, func(f *facts) {
			contract.SetHookError(f.read, f.decision, boom, moment)
		}), "write phase=Succeeded finished=1"},
		"NothingToDo": {"nothing is written", setFinishedFacts, "write"},
		"Unchanged": {"a job with the same spec ends without a call", both(noCall, func(f *facts) {
			f.decision.Unchanged, f.decision.New = true, true
			f.read.Status.JobIDFinished, f.read.Status.Phase = "0", lsv1alpha1.DeployItemPhases.Succeeded
		}), "write phase=Succeeded finished=1 annotations=a"},

		"Background":          {"a background run shows its success", background, "write phase=Succeeded finished=1 background=False/Succeeded keep"},
		"BackgroundUnchanged": {"without news what is stored stays", both(background, func(f *facts) { f.call.unchanged = true }), "write phase=Succeeded finished=1 keep"},
		"BackgroundOverFailure": {"unless what is stored is over", both(background, func(f *facts) {
			f.call.unchanged = true
			contract.ApplyOutcome(f.read, f.decision, contract.Outcome{Err: failing}, moment, moment)
			f.working = f.read.DeepCopy()
		}), "write phase=Succeeded finished=1 background=False/Succeeded keep"},

		"Aborted":         {"Abort runs next; progress is kept", cancelled(ErrAborted), "write phase=Init finished="},
		"Shutdown":        {"as after a stop of the process", cancelled(ErrShutdown), "write phase=Init finished="},
		"Interrupted":     {"the run is not ours any more", cancelled(ErrInterrupted), "interrupted"},
		"Deadline":        {"the run is over", cancelled(ErrDeadline), "write phase=Failed finished=1 lastError=ProgressingTimeout annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " event=ProgressingTimeout keep"},
		"DeadlineOfAbort": {"so is an abort", both(cancelled(ErrDeadline), func(f *facts) { f.decision.Action = contract.ActionAbort }), "write phase=Failed finished=1 lastError=AbortingTimeout annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " event=AbortingTimeout keep"},
		"DeadlineOfHooks": {"hooks outside a run hung", both(setFinishedFacts, cancelled(ErrDeadline)), "failed err=the hooks did not return in time"},
		"CancelledError":  {"the error that a cancelled call returned does not count", both(cancelled(ErrAborted), func(f *facts) { f.err = boom }), "write phase=Init finished="},

		"StartSuperseded": {"the start met another change", both(noCall, func(f *facts) { f.err = fmt.Errorf("operate: %w", statuswriter.ErrSuperseded) }), "superseded err=operate: the job of this call is no longer the current one"},
		"Refused":         {"a run whose outcome is refused ends with that", func(f *facts) { f.refusal, f.refused = secret, f.call.outcome }, "write phase=Failed finished=1 lastError=StatusRefused annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " keep"},
		"RefusedUserState": {"and without what user code put into the status", func(f *facts) {
			f.refusal, f.refused = secret, f.call.outcome
			f.working.Status.ExportReference = &lsv1alpha1.ObjectReference{}
		}, "write phase=Failed finished=1 lastError=StatusRefused annotations=" + contract.AbortTimestampAnnotation + "," + lsv1alpha1.OperationAnnotation + " keep"},
		"RefusedNotDue": {"outside a run the refusal is a hook's error", both(setFinishedFacts, func(f *facts) { f.refusal = secret }), "write phase=Succeeded finished=1 background=Unknown/HookFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newCallFacts()
			tc.change(&f)
			before := []*lsv1alpha1.DeployItem{f.read.DeepCopy(), f.stored.DeepCopy(), f.working.DeepCopy()}
			o := determineOutcome(f)
			if diff := cmp.Diff(tc.want, formatOutcome(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, []*lsv1alpha1.DeployItem{f.read, f.stored, f.working}); diff != "" {
				t.Errorf("judge changed its input:\n%s", diff)
			}
		})
	}
}

func TestGetOutcomeWithoutCall(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*facts)
		want   bool
	}{
		"Runs":          {func(*facts) {}, false},
		"Expired":       {func(f *facts) { f.decision.Expired = true }, true},
		"Aborts":        {func(f *facts) { f.decision.Action, f.abortDeadline = contract.ActionAbort, f.now.Add(1) }, false},
		"AbortExpired":  {func(f *facts) { f.decision.Action, f.abortDeadline = contract.ActionAbort, f.now }, true},
		"Deletes":       {func(f *facts) { f.decision.Action = contract.ActionDelete }, false},
		"SkipUninstall": {func(f *facts) { f.decision.Action, f.decision.SkipUninstall = contract.ActionDelete, true }, true},
		"NeverDeployed": {func(f *facts) { f.decision.Action, f.read = contract.ActionDelete, &lsv1alpha1.DeployItem{} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newCallFacts()
			tc.change(&f)
			if got := getOutcomeWithoutCall(f) != nil; got != tc.want {
				t.Errorf("ends without a call: %t", got)
			}
		})
	}
}
