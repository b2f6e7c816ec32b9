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

// versioned returns an item with a resourceVersion and a phase.
func versioned(resourceVersion, phase string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID, di.ResourceVersion, di.Status.Phase = "uid", resourceVersion, lsv1alpha1.DeployItemPhase(phase)
	return di
}

// wrote returns the state of an item of which this process has written the given version.
func wrote(resourceVersion string) *Item {
	i := &Item{}
	i.Wrote(versioned(resourceVersion, ""))
	return i
}

// begin begins an attempt that cannot be cancelled.
func begin(i *Item) *Attempt {
	return i.Begin(testclock.NewFakeClock(moment), func(error) {})
}

func TestObserve(t *testing.T) {
	t.Parallel()
	di := versioned("10", "Init")
	cases := map[string]struct {
		reason string
		item   func() *Item
		old    *lsv1alpha1.DeployItem
		want   bool
	}{
		"New":       {"a new digest needs a reconcile", func() *Item { return &Item{} }, nil, true},
		"ActedOn":   {"this digest was acted on", func() *Item { return &Item{gate: gate{digest: DigestOf(di)}} }, nil, false},
		"Expected":  {"a write under way brings it about", func() *Item { i := &Item{}; i.ExpectWrite(DigestOf(di)); return i }, nil, false},
		"OwnWrite":  {"it is the answer to the last write", func() *Item { return wrote("10") }, nil, false},
		"BeforeOwn": {"the last write was based on it or on a later one", func() *Item { return wrote("11") }, nil, false},
		"AfterOwn":  {"it is newer than the last write", func() *Item { return wrote("9") }, nil, true},
		"Foreign":   {"the last write met a change that was not looked at", func() *Item { i := wrote("11"); i.MarkStale(); return i }, nil, true},
		"Backwards": {"the cache went backwards, so the etcd may have been restored", func() *Item { return wrote("11") }, versioned("11", "Init"), true},
		"Forwards":  {"the cache went forwards", func() *Item { return wrote("11") }, versioned("9", "Init"), false},
		"Awaited": {"a reconcile waits for it", func() *Item {
			i := wrote("10")
			i.gate.digest = DigestOf(di)
			i.Read(versioned("9", "Init"), moment)
			return i
		}, nil, true},
		"BeforeAwaited": {"a reconcile waits for a newer one", func() *Item {
			i := wrote("11")
			i.Read(versioned("9", "Init"), moment)
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
	i, awaited := wrote("10"), versioned("10", "Init")
	i.Read(versioned("9", "Init"), moment)
	begin(i).End(DigestOf(awaited), true, Pace{Next: moment.Add(time.Hour)})
	i.Read(versioned("9", "Init"), moment)
	i.Observe(nil, awaited)
	if got := i.Wait(awaited, true, moment); got != 0 {
		t.Errorf("i.Wait(...) = %v, want %v", got, 0)
	}
	if i.Observe(nil, awaited) {
		t.Error("the same event leads to another reconcile")
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		prepare func(*Item)
		seen    *lsv1alpha1.DeployItem
		want    time.Duration
		resets  bool
	}{
		"OwnVersion":    {"nothing is new", func(*Item) {}, versioned("5", "Progressing"), time.Hour, false},
		"CacheLags":     {"a version from before the own write must not cut a wait short", func(*Item) {}, versioned("4", "Init"), time.Hour, false},
		"Changed":       {"a change by another client opens the gate", func(*Item) {}, versioned("6", "Init"), 0, true},
		"ForeignChange": {"a write onto a change that was not looked at is not known", func(i *Item) { begin(i).End(Digest{hash: 1, valid: true}, false, Pace{Next: moment.Add(time.Hour)}) }, versioned("4", "Init"), 0, true},
		"Triggered":     {"a trigger opens the gate", (*Item).Trigger, versioned("5", "Progressing"), 0, false},
		"TriggeredLags": {"also while the cache lags behind", (*Item).Trigger, versioned("4", "Init"), 0, false},
		"InTime":        {"the wait is over", func(i *Item) { begin(i).End(DigestOf(versioned("5", "Progressing")), true, Pace{Next: moment}) }, versioned("5", "Progressing"), 0, false},
		"Consumed":      {"a trigger opens it for one attempt", func(i *Item) { i.Trigger(); end(begin(i)) }, versioned("5", "Progressing"), time.Hour, false},
		"TriggeredWhile": {"a trigger while an attempt is in flight is not lost", func(i *Item) {
			a := begin(i)
			i.Trigger()
			end(a)
		}, versioned("5", "Progressing"), 0, false},
		"Unread": {"an attempt that did not see the item holds nothing back", func(i *Item) { begin(i).EndUnread(time.Time{}) }, versioned("5", "Progressing"), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := wrote("5")
			i.Count(End{Failed: true, Immediate: true})
			end(begin(i))
			tc.prepare(i)
			if got := i.Wait(tc.seen, true, moment); got != tc.want {
				t.Errorf("%s: waits %s, want %s", tc.reason, got, tc.want)
			}
			if resets := i.retries.Retries == (Retries{}); resets != tc.resets {
				t.Errorf("%s: got the counters %+v, want a reset: %t", tc.reason, i.retries.Retries, tc.resets)
			}
		})
	}
}

func TestWaitAfterBackgroundRun(t *testing.T) {
	t.Parallel()
	for job, want := range map[bool]time.Duration{true: 0, false: time.Second} {
		t.Run(fmt.Sprintf("a changed item waits %s after a background run if a job is due: %t [F66]", want, job), func(t *testing.T) {
			t.Parallel()
			i := wrote("5")
			begin(i).End(DigestOf(versioned("5", "Progressing")), true, Pace{Next: moment.Add(time.Hour), Rest: moment.Add(time.Second)})
			if got := i.Wait(versioned("6", "Init"), job, moment); got != want {
				t.Errorf("i.Wait(...) = %v, want %v", got, want)
			}
		})
	}
}

// end ends an attempt that requests the next attempt after an hour.
func end(a *Attempt) {
	a.End(DigestOf(versioned("5", "Progressing")), true, Pace{Next: moment.Add(time.Hour)})
}

func TestRead(t *testing.T) {
	t.Parallel()
	i := &Item{}
	if got := i.Read(versioned("8", ""), moment); got != ReadingCurrent {
		t.Errorf("without a write: %d", got)
	}
	for _, v := range []string{"9", "10", "8"} {
		i.Wrote(versioned(v, ""))
	}
	for v, want := range map[string]Reading{"9": ReadingStale, "10": ReadingCurrent, "11": ReadingCurrent} {
		if got := i.Read(versioned(v, ""), moment); got != want {
			t.Errorf("version %s: reading %d, want %d: the newest write is 10", v, got, want)
		}
	}
	t.Run("an item that lost its last finalizer is gone, although the cache contains it", func(t *testing.T) {
		gone := versioned("10", "")
		gone.DeletionTimestamp = &metav1.Time{}
		i.Wrote(gone)
		if got := i.Read(gone, moment); got != ReadingReleased {
			t.Errorf("reading %d", got)
		}
		anew := versioned("12", "")
		anew.UID = "new"
		if got := i.Read(anew, moment); got != ReadingCurrent {
			t.Errorf("another item with the same name: reading %d", got)
		}
	})
	t.Run("the data of an object is dropped when the object is recreated", func(t *testing.T) {
		i := &Item{}
		i.Read(versioned("1", ""), moment)
		i.MarkResumed()
		i.Count(End{Failed: true})
		first := i.AbortDeadline(versioned("1", ""), moment)
		i.Read(versioned("2", ""), moment)
		if !i.Resumed() || !i.AbortDeadline(versioned("1", ""), moment.Add(time.Minute)).Equal(first) {
			t.Error("the state of the same object was reset")
		}
		anew := versioned("3", "")
		anew.UID = "new"
		i.Read(anew, moment)
		if i.Resumed() || i.Count(End{}).Failures != 0 || i.AbortDeadline(anew, moment.Add(time.Minute)).Equal(first) {
			t.Errorf("the state of the item was kept for a new object with the same name: %+v", i)
		}
	})
}

// step is a read of an item from the cache or from the API server. The time of the read is `moment` plus the duration
// in the field `after`.
type step struct {
	after time.Duration
	read  string  // version that the cache shows; empty for a live read
	live  string  // version that the API server returns
	want  Reading // the expected classification of the read from the cache
	take  bool    // whether the response to the live read is accepted
}

func TestOlderVersions(t *testing.T) {
	t.Parallel()
	const s = time.Second
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"TheCacheLags [F60]": {"as long as the cache lags behind, live reads say so now and then", []step{
			{0, "90", "", ReadingStale, false},
			{9 * s, "90", "", ReadingStale, false},
			{10 * s, "90", "", ReadingSuspect, false},
			{10 * s, "", "100", 0, true},
			{11 * s, "90", "", ReadingStale, false},
			{20 * s, "90", "", ReadingSuspect, false},
			{21 * s, "100", "", ReadingCurrent, false},
		}},
		"EtcdWasRestored [F60]": {"two old answers with time in between are proof", []step{
			{0, "50", "", ReadingStale, false},
			{10 * s, "50", "", ReadingSuspect, false},
			{10 * s, "", "50", 0, false},
			{19 * s, "50", "", ReadingStale, false},
			{20 * s, "50", "", ReadingSuspect, false},
			{20 * s, "", "50", 0, true},
			{20 * s, "50", "", ReadingCurrent, false},
			{21 * s, "49", "", ReadingStale, false},
		}},
		"OldAnswers [F60]": {"an old answer between good ones proves nothing", []step{
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
			i := wrote("100")
			for n, s := range tc.steps {
				now := moment.Add(s.after)
				if s.live != "" {
					if got := i.ConfirmRead(s.live, now); got != s.take {
						t.Fatalf("%s: step %d: live read accepted: %t", tc.reason, n, got)
					}
				} else if got := i.Read(versioned(s.read, ""), now); got != s.want {
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
		i, di := wrote("100"), versioned("50", "Init")
		i.Claim(di)
		begin(i).End(DigestOf(di), true, Pace{Next: moment.Add(time.Hour)})
		i.ConfirmRead("50", moment)
		i.ConfirmRead("50", moment.Add(suspicion))
		if got := i.Wait(di, true, moment.Add(suspicion)); got != 0 {
			t.Errorf("i.Wait(...) = %v, want %v", got, 0)
		}
		if i.Claim(di) {
			t.Error("an earlier run still counts as claimed")
		}
		if !i.Observe(nil, versioned("51", "Succeeded")) {
			t.Error("a change does not lead to a reconcile")
		}
	})
}

func TestClaim(t *testing.T) {
	t.Parallel()
	i, di := &Item{}, &lsv1alpha1.DeployItem{}
	di.UID, di.Status.JobID = "u", "1"
	if i.Claim(di) || !i.Claim(di) {
		t.Error("Claim must return false for a new run, and true for the same run")
	}
	i.Unclaim()
	if i.Claim(di) {
		t.Error("the run is claimed after Unclaim")
	}
	di.Status.LastReconcileTime = &metav1.Time{Time: moment}
	if i.Claim(di) {
		t.Error("a run with another start time counts as claimed")
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	i := &Item{}
	for n, step := range []struct {
		end  End
		want Retries
	}{
		{End{Failed: true}, Retries{Failures: 1}},
		{End{Failed: true, Settled: true, Immediate: true}, Retries{Failures: 2, Immediate: 1}},
		{End{Immediate: true}, Retries{Failures: 2, Immediate: 2}},
		{End{}, Retries{Failures: 2}},
		{End{Settled: true}, Retries{}},
	} {
		if got := i.Count(step.end); got != step.want {
			t.Errorf("step %d: %+v, want %+v", n, got, step.want)
		}
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	tracker := NewTracker()
	key := types.NamespacedName{Name: "a"}
	item := tracker.Get(key)
	item.Quarantine(true)
	tracker.Forget(key)
	if tracker.Get(key) != item {
		t.Error("the state of an item was removed although its call does not return")
	}
	if begin(item) != nil {
		t.Error("an attempt began although a call does not return")
	}
	item.Quarantine(false)
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
			if err := a.EnterCall(work); err != nil {
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
			if got := a.EnterCall(work); !errors.Is(got, tc.want) {
				t.Errorf("on entering the call: cause %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	sealed := begin(&Item{})
	if !sealed.Seal() || sealed.Abandon() || sealed.Abandoned() {
		t.Error("a sealed attempt was abandoned")
	}
	sealed.AbandonSealed()
	if !sealed.Abandoned() {
		t.Error("a sealed attempt that does not end was not abandoned")
	}
	abandoned := begin(&Item{})
	if !abandoned.Abandon() || abandoned.Seal() {
		t.Error("an abandoned attempt was sealed")
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	clk := testclock.NewFakeClock(moment)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := (&Item{}).Begin(clk, cancel)
	a.Limit(time.Minute)
	a.Limit(time.Hour)
	clk.Step(time.Minute)
	if ctx.Err() != nil {
		t.Error("the previous limit is still in effect")
	}
	a.Unlimit()
	clk.Step(time.Hour)
	if ctx.Err() != nil {
		t.Error("a limit that was removed is still in effect")
	}
	a.Limit(-1)
	clk.Step(0)
	if !errors.Is(context.Cause(ctx), ErrDeadline) {
		t.Errorf("cause = %v, want %v", context.Cause(ctx), ErrDeadline)
	}
}
