// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBackoffGetDelay(t *testing.T) {
	exact := func(d time.Duration) time.Duration { return d }
	b := Backoff{Min: time.Second, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := b.getDelay(failures, exact); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := (Backoff{Min: time.Hour, Max: time.Hour}).getDelay(1, exact); got != time.Hour {
		t.Errorf("with equal bounds: %s", got)
	}
	if got := (Backoff{Min: 1 << 62, Max: 1<<63 - 1}).getDelay(5, exact); got != 1<<63-1 {
		t.Errorf("an overflow gave %s", got)
	}
	for range 1000 {
		if got := withJitter(time.Minute); got < 54*time.Second || got > 66*time.Second {
			t.Fatalf("jitter gave %s for a minute, want ±10 %%", got)
		}
	}
}

func TestGetImmediateDelay(t *testing.T) {
	for i := range 9 {
		if got := getImmediateDelay(i + 1); got != 0 {
			t.Errorf("requeue %d waits %s", i+1, got)
		}
	}
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := getImmediateDelay(10 + i); got != want*time.Millisecond {
			t.Errorf("requeue %d waits %s, want %s", 10+i, got, want*time.Millisecond)
		}
	}
}

func TestGetPriority(t *testing.T) {
	item := func(op lsv1alpha1.Operation, deleting bool) *lsv1alpha1.DeployItem {
		di := &lsv1alpha1.DeployItem{}
		if op != "" {
			di.Annotations = map[string]string{lsv1alpha1.OperationAnnotation: string(op)}
		}
		if deleting {
			di.DeletionTimestamp = &metav1.Time{Time: moment}
		}
		return di
	}
	tests := map[string]struct {
		di   *lsv1alpha1.DeployItem
		want int
	}{
		"job":             {item("", false), 0},
		"deletion":        {item("", true), 100},
		"abort":           {item(contract.AbortOperation, false), 100},
		"force-reconcile": {item(lsv1alpha1.ForceReconcileOperation, false), 100},
		"reconcile":       {item(lsv1alpha1.ReconcileOperation, false), 100},
		"test-reconcile":  {item(lsv1alpha1.TestReconcileOperation, false), 100},
		"something else":  {item("else", false), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := getPriority(test.di); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestCreatePriority(t *testing.T) {
	d := &dispatcher{evaluate: func(di *lsv1alpha1.DeployItem) contract.Decision {
		return contract.Evaluate(di, contract.Options{Now: moment})
	}}
	started, finished, owed, deleting := newJobItem(), newJobItem(), newJobItem(), newJobItem()
	finished.Status.JobIDFinished, finished.Status.Phase = finished.Status.JobID, lsv1alpha1.DeployItemPhases.Succeeded
	finished.DeepCopyInto(owed)
	owed.Status.Conditions = []lsv1alpha1.Condition{{Type: contract.ConditionBackground, Status: lsv1alpha1.ConditionTrue}}
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: moment}, []string{lsv1alpha1.LandscaperFinalizer}
	for name, tc := range map[string]struct {
		item    *lsv1alpha1.DeployItem
		initial bool
		want    int
	}{
		"an item with a due job, present at the start, precedes periodic runs [F68]":        {started, true, priorityJob},
		"an item with a due deletion, present at the start, precedes periodic runs [F68]":   {deleting, true, priorityUser},
		"a finished item, present at the start, is as urgent as periodic runs [F68]":        {finished, true, priorityPeriodic},
		"an item with a pending background run, present at the start, is not urgent [F68]":  {owed, true, priorityPeriodic},
		"an item that is created later is as urgent as any other job":                       {started, false, priorityJob},
		"an item that is created later is reconciled soon even if it claims to be finished": {finished, false, priorityJob},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.TypedCreateEvent[*lsv1alpha1.DeployItem]{Object: tc.item, IsInInitialList: tc.initial}
			if got := d.createPriority(e); got != tc.want {
				t.Errorf("got the priority %d, want %d", got, tc.want)
			}
		})
	}
}

func TestComputeNext(t *testing.T) {
	t.Parallel()
	now := moment.Add(time.Minute)
	job := contract.Decision{Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Due: true}
	held, abort, background := job, job, job
	held.BlockedByPause, held.Due = true, false
	abort.Action = contract.ActionAbort
	background.Background = true
	urgent := 200
	final, waits := &contract.Outcome{Final: true, Done: true}, &contract.Outcome{Waiting: true}
	of := func(d contract.Decision, change func(*attemptEnd)) attemptEnd {
		e := attemptEnd{after: itemState{item: newJobItem(), current: true}, responsible: true, decision: d}
		change(&e)
		return e
	}
	deadline := contract.DefaultTimeout - time.Minute // the job began at the time in the variable `moment`
	cases := map[string]struct {
		reason  string
		ending  attemptEnd
		retries itemstate.Retries
		want    nextReconcile
	}{
		"Settled":       {"nothing is due", of(contract.Decision{}, func(e *attemptEnd) { e.kind = endSucceeded }), itemstate.Retries{}, nextReconcile{priority: priorityPeriodic}},
		"HookAsks":      {"a hook asks for a time", of(contract.Decision{}, func(e *attemptEnd) { e.hookRequeue.RequeueAfter = time.Hour }), itemstate.Retries{}, nextReconcile{after: time.Hour, priority: priorityPeriodic}},
		"Open":          {"an open run ends at its deadline", of(job, func(*attemptEnd) {}), itemstate.Retries{}, nextReconcile{after: deadline}},
		"Waits":         {"a wait is sooner", of(job, func(e *attemptEnd) { e.outcome, e.wait = waits, time.Minute }), itemstate.Retries{}, nextReconcile{after: time.Minute}},
		"WaitsPast":     {"a wait does not go past the deadline", of(job, func(e *attemptEnd) { e.outcome, e.wait = waits, time.Hour }), itemstate.Retries{}, nextReconcile{after: deadline}},
		"Failed":        {"the backoff counts the failures", of(job, func(e *attemptEnd) { e.kind = endFailed }), itemstate.Retries{Failures: 3}, nextReconcile{after: 3 * time.Second, triggerDelay: 3 * time.Second}},
		"Overdue":       {"the deadline of a background run does not change the backoff [F65]", of(background, func(e *attemptEnd) { e.kind, e.outcome, e.after.backoff = endFailed, final, time.Minute }), itemstate.Retries{Failures: 3}, nextReconcile{after: time.Minute, triggerDelay: time.Minute, priority: priorityPeriodic}},
		"HookSooner":    {"a hook cannot shorten the backoff [F65]", of(job, func(e *attemptEnd) { e.kind, e.hookRequeue.RequeueAfter = endFailed, time.Second }), itemstate.Retries{Failures: 3}, nextReconcile{after: 3 * time.Second, triggerDelay: 3 * time.Second}},
		"FailedForGood": {"nothing is retried, but a trigger waits [F65]", of(job, func(e *attemptEnd) { e.kind, e.noRetry, e.outcome = endFailed, true, final }), itemstate.Retries{Failures: 3}, nextReconcile{triggerDelay: 3 * time.Second}},
		"OverHookSooner": {"a hook cannot shorten the backoff [F65]", of(job, func(e *attemptEnd) {
			e.kind, e.noRetry, e.outcome, e.hookRequeue.RequeueAfter = endFailed, true, final, time.Second
		}), itemstate.Retries{Failures: 3}, nextReconcile{after: 3 * time.Second, triggerDelay: 3 * time.Second}},
		"OverHookLater": {"a hook asks for a later time", of(job, func(e *attemptEnd) {
			e.kind, e.noRetry, e.outcome, e.hookRequeue.RequeueAfter = endFailed, true, final, time.Hour
		}), itemstate.Retries{Failures: 3}, nextReconcile{after: time.Hour, triggerDelay: 3 * time.Second}},
		"FailedPast":      {"a run that fails ends at its deadline", of(job, func(e *attemptEnd) { e.kind = endFailed }), itemstate.Retries{Failures: 3600}, nextReconcile{after: deadline, triggerDelay: time.Hour}},
		"HookRequeuesBad": {"a hook cannot skip the backoff [F65]", of(job, func(e *attemptEnd) { e.kind, e.hookRequeue.Requeue = endFailed, true }), itemstate.Retries{Failures: 3}, nextReconcile{after: 3 * time.Second, triggerDelay: 3 * time.Second}},
		"Rests":           {"a background run ended; a trigger waits [F66]", of(background, func(e *attemptEnd) { e.kind, e.after.triggerDelay = endSucceeded, time.Second }), itemstate.Retries{}, nextReconcile{triggerDelay: time.Second, priority: priorityPeriodic}},
		"HookUrgent":      {"a hook raises the priority, but not of a failure", of(job, func(e *attemptEnd) { e.hookRequeue.Priority = &urgent }), itemstate.Retries{}, nextReconcile{after: deadline, priority: urgent}},
		"FailureUrgent":   {"a retry is not urgent", of(job, func(e *attemptEnd) { e.kind, e.hookRequeue.Priority = endFailed, &urgent }), itemstate.Retries{Failures: 1}, nextReconcile{after: time.Second, triggerDelay: time.Second}},
		"Superseded":      {"the newer version comes soon", of(job, func(e *attemptEnd) { e.kind = endSuperseded }), itemstate.Retries{}, nextReconcile{after: staleRetry}},
		"Unread":          {"the newer version comes soon", attemptEnd{wait: staleRetry}, itemstate.Retries{}, nextReconcile{after: staleRetry, priority: priorityPeriodic}},
		"Again":           {"at once", of(job, func(e *attemptEnd) { e.requeue = true }), itemstate.Retries{Immediate: 1}, nextReconcile{immediate: true}},
		"AgainAndAgain":   {"too many in a row are slowed down", of(job, func(e *attemptEnd) { e.requeue = true }), itemstate.Retries{Immediate: 10}, nextReconcile{immediate: true, after: 100 * time.Millisecond}},
		"HookRequeues":    {"a hook asks for another attempt at once", of(contract.Decision{}, func(e *attemptEnd) { e.hookRequeue.Requeue = true }), itemstate.Retries{Immediate: 1}, nextReconcile{immediate: true, priority: priorityPeriodic}},
		"Ended":           {"a run that ended has no deadline", of(job, func(e *attemptEnd) { e.outcome, e.kind = final, endSucceeded }), itemstate.Retries{}, nextReconcile{}},
		"EndedAnotherDue": {"the item asks for another run", of(job, func(e *attemptEnd) { e.outcome, e.after.nextDecision.Due = final, true }), itemstate.Retries{}, nextReconcile{immediate: true}},
		"EndedHeld":       {"a run that is held back has to be shown", of(job, func(e *attemptEnd) { e.outcome, e.after.nextDecision.BlockedByPause = final, true }), itemstate.Retries{}, nextReconcile{immediate: true}},
		"BackgroundEnded": {"a background run is no reason to look again", of(background, func(e *attemptEnd) { e.outcome, e.after.nextDecision.Due = final, true }), itemstate.Retries{}, nextReconcile{priority: priorityPeriodic}},
		"Abort":           {"an abort has a deadline of its own", of(abort, func(e *attemptEnd) { e.after.abortDeadline = now.Add(time.Second) }), itemstate.Retries{}, nextReconcile{after: time.Second}},
		"AbortOverdue":    {"what is overdue is due at once", of(abort, func(e *attemptEnd) { e.after.abortDeadline = moment }), itemstate.Retries{}, nextReconcile{after: time.Millisecond}},
		"TargetGrace":     {"a deletion waits for its Target only for the grace", of(job, func(e *attemptEnd) { e.after.targetDeadline = now.Add(time.Second) }), itemstate.Retries{}, nextReconcile{after: time.Second}},
		"Held":            {"a run that is held back ends at its deadline", of(held, func(*attemptEnd) {}), itemstate.Retries{}, nextReconcile{after: deadline, priority: priorityPeriodic}},
		"NotResponsible":  {"another deployer sees to it", of(job, func(e *attemptEnd) { e.responsible = false }), itemstate.Retries{}, nextReconcile{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backoff := func(failures int) time.Duration { return time.Duration(failures) * time.Second }
			if got := computeNext(tc.ending, tc.retries, backoff, now); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}
