// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/contract"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newItem returns an item with a resourceVersion and a phase.
func newItem(resourceVersion, phase string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID, di.ResourceVersion, di.Status.Phase = "uid", resourceVersion, lsv1alpha1.DeployItemPhase(phase)
	return di
}

// newWrittenState returns the state of an item of which this process has written the given version.
func newWrittenState(resourceVersion string) *Item {
	i := &Item{}
	i.RecordWrite(newItem(resourceVersion, ""))
	return i
}

// beginAttempt begins an attempt that cannot be cancelled.
func beginAttempt(i *Item) *Attempt {
	return i.Begin(testclock.NewFakeClock(moment), func(error) {})
}

func TestObserve(t *testing.T) {
	t.Parallel()
	di := newItem("10", "Init")
	cases := map[string]struct {
		reason string
		item   func() *Item
		old    *lsv1alpha1.DeployItem
		want   bool
	}{
		"New":       {"a new digest needs a reconcile", func() *Item { return &Item{} }, nil, true},
		"ActedOn":   {"this digest was acted on", func() *Item { return &Item{gate: gate{digest: ComputeDigest(di)}} }, nil, false},
		"Expected":  {"a write under way brings it about", func() *Item { i := &Item{}; i.ExpectWrite(ComputeDigest(di)); return i }, nil, false},
		"OwnWrite":  {"it is the answer to the last write", func() *Item { return newWrittenState("10") }, nil, false},
		"BeforeOwn": {"the last write was based on it or on a later one", func() *Item { return newWrittenState("11") }, nil, false},
		"AfterOwn":  {"it is newer than the last write", func() *Item { return newWrittenState("9") }, nil, true},
		"Foreign":   {"the last write met a change that was not looked at", func() *Item { i := newWrittenState("11"); i.MarkStale(); return i }, nil, true},
		"Backwards": {"the cache went backwards, so the etcd may have been restored", func() *Item { return newWrittenState("11") }, newItem("11", "Init"), true},
		"Forwards":  {"the cache went forwards", func() *Item { return newWrittenState("11") }, newItem("9", "Init"), false},
		"Awaited": {"a reconcile waits for it", func() *Item {
			i := newWrittenState("10")
			i.gate.digest = ComputeDigest(di)
			i.CheckRead(newItem("9", "Init"), moment)
			return i
		}, nil, true},
		"BeforeAwaited": {"a reconcile waits for a newer one", func() *Item {
			i := newWrittenState("11")
			i.CheckRead(newItem("9", "Init"), moment)
			return i
		}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := tc.item()
			if got := i.Observe(tc.old, di); got != tc.want {
				t.Errorf("%s: needs a reconcile: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestObserveStopsWaitAtAwaitedVersion(t *testing.T) {
	t.Parallel()
	i, awaited := newWrittenState("10"), newItem("10", "Init")
	i.CheckRead(newItem("9", "Init"), moment)
	beginAttempt(i).Complete(ComputeDigest(awaited), true, Schedule{Next: moment.Add(time.Hour)})
	i.CheckRead(newItem("9", "Init"), moment)
	i.Observe(nil, awaited)
	if got := i.GetDelay(awaited, true, moment); got != 0 {
		t.Errorf("i.Wait(...) = %v, want %v", got, 0)
	}
	if i.Observe(nil, awaited) {
		t.Error("the same event leads to another reconcile")
	}
}

func TestGetDelay(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		prepare func(*Item)
		seen    *lsv1alpha1.DeployItem
		want    time.Duration
		resets  bool
	}{
		"OwnVersion": {"nothing is new", func(*Item) {}, newItem("5", "Progressing"), time.Hour, false},
		"CacheLags":  {"a version from before the own write must not cut a wait short", func(*Item) {}, newItem("4", "Init"), time.Hour, false},
		"Changed":    {"a change by another client opens the gate", func(*Item) {}, newItem("6", "Init"), 0, true},
		"ForeignChange": {"a write onto a change that was not looked at is not known", func(i *Item) {
			beginAttempt(i).Complete(1, false, Schedule{Next: moment.Add(time.Hour)})
		}, newItem("4", "Init"), 0, true},
		"Triggered":     {"a trigger opens the gate", (*Item).Trigger, newItem("5", "Progressing"), 0, false},
		"TriggeredLags": {"also while the cache lags behind", (*Item).Trigger, newItem("4", "Init"), 0, false},
		"InTime": {"the wait is over", func(i *Item) {
			beginAttempt(i).Complete(ComputeDigest(newItem("5", "Progressing")), true, Schedule{Next: moment})
		}, newItem("5", "Progressing"), 0, false},
		"Consumed": {"a trigger opens it for one attempt", func(i *Item) { i.Trigger(); completeAttempt(beginAttempt(i)) }, newItem("5", "Progressing"), time.Hour, false},
		"TriggeredWhile": {"a trigger while an attempt is in flight is not lost", func(i *Item) {
			a := beginAttempt(i)
			i.Trigger()
			completeAttempt(a)
		}, newItem("5", "Progressing"), 0, false},
		"Unread": {"an attempt that did not see the item holds nothing back", func(i *Item) { beginAttempt(i).CompleteWithoutRead(time.Time{}) }, newItem("5", "Progressing"), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newWrittenState("5")
			i.RecordEnd(AttemptEnd{Failed: true, Immediate: true})
			completeAttempt(beginAttempt(i))
			tc.prepare(i)
			if got := i.GetDelay(tc.seen, true, moment); got != tc.want {
				t.Errorf("%s: waits %s, want %s", tc.reason, got, tc.want)
			}
			if resets := i.retries.Retries == (Retries{}); resets != tc.resets {
				t.Errorf("%s: got the counters %+v, want a reset: %t", tc.reason, i.retries.Retries, tc.resets)
			}
		})
	}
}

func TestGetDelayAfterBackgroundRun(t *testing.T) {
	t.Parallel()
	for job, want := range map[bool]time.Duration{true: 0, false: time.Second} {
		t.Run(fmt.Sprintf("a changed item waits %s after a background run if a job is due: %t [F66]", want, job), func(t *testing.T) {
			t.Parallel()
			i := newWrittenState("5")
			beginAttempt(i).Complete(ComputeDigest(newItem("5", "Progressing")), true, Schedule{Next: moment.Add(time.Hour), ChangesNotBefore: moment.Add(time.Second)})
			if got := i.GetDelay(newItem("6", "Init"), job, moment); got != want {
				t.Errorf("i.Wait(...) = %v, want %v", got, want)
			}
		})
	}
}

// completeAttempt ends an attempt that requests the next attempt after an hour.
func completeAttempt(a *Attempt) {
	a.Complete(ComputeDigest(newItem("5", "Progressing")), true, Schedule{Next: moment.Add(time.Hour)})
}

func TestCheckRead(t *testing.T) {
	t.Parallel()
	i := &Item{}
	if got := i.CheckRead(newItem("8", ""), moment); got != ReadingCurrent {
		t.Errorf("without a write: %d", got)
	}
	for _, v := range []string{"9", "10", "8"} {
		i.RecordWrite(newItem(v, ""))
	}
	for v, want := range map[string]Reading{"9": ReadingStale, "10": ReadingCurrent, "11": ReadingCurrent} {
		if got := i.CheckRead(newItem(v, ""), moment); got != want {
			t.Errorf("version %s: reading %d, want %d: the newest write is 10", v, got, want)
		}
	}
	t.Run("an item that lost its last finalizer is gone, although the cache contains it", func(t *testing.T) {
		gone := newItem("10", "")
		gone.DeletionTimestamp = &metav1.Time{}
		i.RecordWrite(gone)
		if got := i.CheckRead(gone, moment); got != ReadingRemoved {
			t.Errorf("reading %d", got)
		}
		anew := newItem("12", "")
		anew.UID = "new"
		if got := i.CheckRead(anew, moment); got != ReadingCurrent {
			t.Errorf("another item with the same name: reading %d", got)
		}
	})
	t.Run("the data of an object is dropped when the object is recreated", func(t *testing.T) {
		i := &Item{}
		i.CheckRead(newItem("1", ""), moment)
		i.MarkResumed()
		i.RecordEnd(AttemptEnd{Failed: true})
		first := i.GetAbortDeadline(newItem("1", ""), moment)
		i.CheckRead(newItem("2", ""), moment)
		if !i.IsResumed() || !i.GetAbortDeadline(newItem("1", ""), moment.Add(time.Minute)).Equal(first) {
			t.Error("the state of the same object was reset")
		}
		anew := newItem("3", "")
		anew.UID = "new"
		i.CheckRead(anew, moment)
		if i.IsResumed() || i.RecordEnd(AttemptEnd{}).Failures != 0 || i.GetAbortDeadline(anew, moment.Add(time.Minute)).Equal(first) {
			t.Errorf("the state of the item was kept for a new object with the same name: %+v", i)
		}
	})
}

// readStep is a read of an item from the cache or from the API server. The time of the read is `moment` plus the
// duration in the field `after`.
type readStep struct {
	after    time.Duration
	read     string  // version that the cache shows; empty for a live read
	live     string  // version that the API server returns
	want     Reading // the expected classification of the read from the cache
	accepted bool    // whether the response to the live read is accepted
}

func TestOlderVersions(t *testing.T) {
	t.Parallel()
	const s = time.Second
	cases := map[string]struct {
		reason string
		steps  []readStep
	}{
		"TheCacheLags [F60]": {"as long as the cache lags behind, live reads say so now and then", []readStep{
			{0, "90", "", ReadingStale, false},
			{9 * s, "90", "", ReadingStale, false},
			{10 * s, "90", "", ReadingSuspect, false},
			{10 * s, "", "100", 0, true},
			{11 * s, "90", "", ReadingStale, false},
			{20 * s, "90", "", ReadingSuspect, false},
			{21 * s, "100", "", ReadingCurrent, false},
		}},
		"EtcdWasRestored [F60]": {"two old answers with time in between are proof", []readStep{
			{0, "50", "", ReadingStale, false},
			{10 * s, "50", "", ReadingSuspect, false},
			{10 * s, "", "50", 0, false},
			{19 * s, "50", "", ReadingStale, false},
			{20 * s, "50", "", ReadingSuspect, false},
			{20 * s, "", "50", 0, true},
			{20 * s, "50", "", ReadingCurrent, false},
			{21 * s, "49", "", ReadingStale, false},
		}},
		"OldAnswers [F60]": {"an old answer between good ones proves nothing", []readStep{
			{0, "", "50", 0, false},
			{5 * s, "", "100", 0, true},
			{12 * s, "", "50", 0, false},
			{13 * s, "", "50", 0, false},
			{14 * s, "90", "", ReadingStale, false},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newWrittenState("100")
			for n, s := range tc.steps {
				now := moment.Add(s.after)
				if s.live != "" {
					if got := i.ConfirmRead(s.live, now); got != s.accepted {
						t.Fatalf("%s: step %d: live read accepted: %t", tc.reason, n, got)
					}
				} else if got := i.CheckRead(newItem(s.read, ""), now); got != s.want {
					t.Fatalf("%s: step %d: reading %d, want %d", tc.reason, n, got, s.want)
				}
			}
		})
	}
	t.Run("a response that is older than the item of the caller proves nothing", func(t *testing.T) {
		i := &Item{}
		if i.ConfirmRead("5", moment, "4", "6") || !i.ConfirmRead("6", moment, "4", "6") {
			t.Error("a stale response was accepted, or a current response was refused")
		}
	})
	t.Run("after a proved restore, no earlier version delays a reconcile [F60]", func(t *testing.T) {
		i, di := newWrittenState("100"), newItem("50", "Init")
		i.MarkOwnRun(di)
		beginAttempt(i).Complete(ComputeDigest(di), true, Schedule{Next: moment.Add(time.Hour)})
		i.ConfirmRead("50", moment)
		i.ConfirmRead("50", moment.Add(maxStaleTime))
		if got := i.GetDelay(di, true, moment.Add(maxStaleTime)); got != 0 {
			t.Errorf("i.Wait(...) = %v, want %v", got, 0)
		}
		if i.MarkOwnRun(di) {
			t.Error("an earlier run still counts as claimed")
		}
		if !i.Observe(nil, newItem("51", "Succeeded")) {
			t.Error("a change does not lead to a reconcile")
		}
	})
}

func TestMarkOwnRun(t *testing.T) {
	t.Parallel()
	i, di := &Item{}, &lsv1alpha1.DeployItem{}
	di.UID, di.Status.JobID = "u", "1"
	if i.MarkOwnRun(di) || !i.MarkOwnRun(di) {
		t.Error("Claim must return false for a new run, and true for the same run")
	}
	i.ClearOwnRun()
	if i.MarkOwnRun(di) {
		t.Error("the run is claimed after Unclaim")
	}
	di.Status.LastReconcileTime = &metav1.Time{Time: moment}
	if i.MarkOwnRun(di) {
		t.Error("a run with another start time counts as claimed")
	}
}

func TestRecordEnd(t *testing.T) {
	t.Parallel()
	i := &Item{}
	for n, step := range []struct {
		end  AttemptEnd
		want Retries
	}{
		{AttemptEnd{Failed: true}, Retries{Failures: 1}},
		{AttemptEnd{Failed: true, Succeeded: true, Immediate: true}, Retries{Failures: 2, Immediate: 1}},
		{AttemptEnd{Immediate: true}, Retries{Failures: 2, Immediate: 2}},
		{AttemptEnd{}, Retries{Failures: 2}},
		{AttemptEnd{Succeeded: true}, Retries{}},
	} {
		if got := i.RecordEnd(step.end); got != step.want {
			t.Errorf("step %d: %+v, want %+v", n, got, step.want)
		}
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	tracker := NewTracker()
	key := types.NamespacedName{Name: "a"}
	item := tracker.Get(key)
	release := item.Quarantine()
	tracker.Forget(key)
	if tracker.Get(key) != item {
		t.Error("the state of an item was removed although its call does not return")
	}
	if beginAttempt(item) != nil {
		t.Error("an attempt began although a call does not return")
	}
	release()
	tracker.Forget(key)
	if tracker.Len() != 0 {
		t.Error("not forgotten")
	}
}

func TestEventsCancelCalls(t *testing.T) {
	t.Parallel()
	job := func(id, version string) *lsv1alpha1.DeployItem {
		di := &lsv1alpha1.DeployItem{}
		di.UID, di.ResourceVersion, di.Status.JobID, di.Status.Phase = "uid", version, id, lsv1alpha1.DeployItemPhases.Init
		di.Status.LastReconcileTime = &metav1.Time{Time: moment}
		return di
	}
	anew := job("1", "11")
	anew.UID = "new"
	aborted := job("1", "11")
	aborted.Annotations = map[string]string{lsv1alpha1.OperationAnnotation: string(contract.AbortOperation)}
	mine := contract.Decision{Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Due: true}
	background, abort := mine, mine
	background.Background, abort.Action = true, contract.ActionAbort
	cases := map[string]struct {
		decision contract.Decision
		event    *lsv1alpha1.DeployItem
		want     error
	}{
		"Old":               {mine, job("2", "9"), nil},
		"Same":              {mine, job("1", "11"), nil},
		"OtherJob":          {mine, job("2", "11"), ErrInterrupted},
		"OtherObject":       {mine, anew, ErrInterrupted},
		"Aborted":           {mine, aborted, ErrAborted},
		"AbortedWhileAbort": {abort, aborted, nil},
		"Background":        {background, job("2", "11"), nil},
		"BackgroundAbort":   {background, aborted, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := Work{Item: job("1", "10"), Decision: tc.decision}
			start := func() (*Item, *Attempt, context.Context) {
				ctx, cancel := context.WithCancelCause(t.Context())
				i := &Item{}
				return i, i.Begin(testclock.NewFakeClock(moment), cancel), ctx
			}
			i, a, ctx := start()
			if err := a.StartCall(work); err != nil {
				t.Fatal(err)
			}
			i.CancelFor(tc.event)
			if got := context.Cause(ctx); !errors.Is(got, tc.want) {
				t.Errorf("during the call: cause %v, want %v", got, tc.want)
			}
			i, a, ctx = start()
			i.CancelFor(tc.event)
			if got := context.Cause(ctx); got != nil {
				t.Errorf("before the call: cause %v", got)
			}
			if got := a.StartCall(work); !errors.Is(got, tc.want) {
				t.Errorf("on entering the call: cause %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTryAbandon(t *testing.T) {
	t.Parallel()
	sealed := beginAttempt(&Item{})
	if !sealed.Seal() || sealed.TryAbandon() || sealed.IsAbandoned() {
		t.Error("a sealed attempt was abandoned")
	}
	sealed.MarkAbandoned()
	if !sealed.IsAbandoned() {
		t.Error("a sealed attempt that does not end was not abandoned")
	}
	abandoned := beginAttempt(&Item{})
	if !abandoned.TryAbandon() || abandoned.Seal() {
		t.Error("an abandoned attempt was sealed")
	}
}

func TestSetDeadline(t *testing.T) {
	t.Parallel()
	clk := testclock.NewFakeClock(moment)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := (&Item{}).Begin(clk, cancel)
	a.SetDeadline(time.Minute)
	a.SetDeadline(time.Hour)
	clk.Step(time.Minute)
	if ctx.Err() != nil {
		t.Error("the previous limit is still in effect")
	}
	a.RemoveDeadline()
	clk.Step(time.Hour)
	if ctx.Err() != nil {
		t.Error("a limit that was removed is still in effect")
	}
	a.SetDeadline(-1)
	clk.Step(0)
	if !errors.Is(context.Cause(ctx), ErrDeadline) {
		t.Errorf("cause = %v, want %v", context.Cause(ctx), ErrDeadline)
	}
}
