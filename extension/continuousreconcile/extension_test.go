// SPDX-License-Identifier: Apache-2.0

package continuousreconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// newItem returns an item that was last reconciled at the time in the variable `start`.
func newItem(change ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID = "a5f4"
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	di.Status.LastReconcileTime = &metav1.Time{Time: start}
	for _, f := range change {
		f(di)
	}
	return di
}

func fromSpec(spec *cr.ContinuousReconcileSpec) continuousreconcile.NextFunc {
	return continuousreconcile.FromSpec(func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, nil })
}

// executeHook executes the hook in the same way as deployerlib.
func executeHook(t *testing.T, e continuousreconcile.Extension, now time.Time, di *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
	t.Helper()
	e.Clock = clocktesting.NewFakePassiveClock(now)
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(e.Setup())
	return hooks.ExecuteHooks(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook)
}

func newHookResult(abort bool, after time.Duration) *extension.HookResult {
	priority := -50
	return &extension.HookResult{AbortReconcile: abort, ReconcileResult: reconcile.Result{RequeueAfter: after, Priority: &priority}}
}

func TestExtension(t *testing.T) {
	hourly := fromSpec(newEverySpec(time.Hour))
	for name, tc := range map[string]struct {
		reason string
		next   continuousreconcile.NextFunc
		di     *lsv1alpha1.DeployItem
		after  time.Duration // time since start
		want   *extension.HookResult
	}{
		"not due":                                {reason: "requeue at the next time", next: hourly, di: newItem(), after: 20 * time.Minute, want: newHookResult(true, 40*time.Minute)},
		"almost due":                             {reason: "requeue at the next time", next: hourly, di: newItem(), after: time.Hour - 1, want: newHookResult(true, 1)},
		"due":                                    {reason: "run, and requeue at the next time", next: hourly, di: newItem(), after: time.Hour, want: newHookResult(false, time.Hour)},
		"overdue":                                {reason: "the next one counts from now", next: hourly, di: newItem(), after: 90*time.Minute + time.Second/4, want: newHookResult(false, time.Hour-time.Second/4)},
		"overdue with another function":          {reason: "lastReconcileTime has whole seconds", next: newDelaySchedule(time.Hour), di: newItem(), after: 90*time.Minute + time.Second/4, want: newHookResult(false, time.Hour-time.Second/4)},
		"due by cron":                            {reason: "the next full hour", next: fromSpec(newCronSpec("0 * * * *")), di: newItem(), after: 50 * time.Minute, want: newHookResult(false, 49*time.Minute+30*time.Second)},
		"due after a failed run":                 {reason: "schedules are for failed items, too", next: hourly, di: newItem(withPhase(lsv1alpha1.DeployItemPhases.Failed)), after: time.Hour, want: newHookResult(false, time.Hour)},
		"nil item [Lx5]":                         {reason: "no panic", next: hourly, di: nil, after: time.Hour},
		"item that was never reconciled [Lx5]":   {reason: "no panic, not due", next: hourly, di: newItem(withLastReconcileTime(nil)), after: time.Hour},
		"item with a zero time [Lx5]":            {reason: "not due", next: hourly, di: newItem(withLastReconcileTime(&metav1.Time{})), after: time.Hour},
		"schedule that is turned off [Lx4]":      {reason: "no result", next: hourly, di: newItem(withActiveAnnotation("false")), after: time.Hour},
		"schedule that is turned on [Lx4]":       {reason: "the same as without the annotation", next: hourly, di: newItem(withActiveAnnotation("true")), after: time.Hour, want: newHookResult(false, time.Hour)},
		"item that is being deleted":             {reason: "no result", next: hourly, di: newItem(withDeletion), after: time.Hour},
		"item without a schedule":                {reason: "no result", next: fromSpec(nil), di: newItem(), after: time.Hour},
		"schedule with one run":                  {reason: "one run without a requeue", next: newOnceSchedule(start.Add(time.Minute)), di: newItem(), after: time.Hour, want: newHookResult(false, 0)},
		"schedule in the past":                   {reason: "a run without a requeue", next: newFixedSchedule(start), di: newItem(), after: time.Hour, want: newHookResult(false, 0)},
		"item that was reconciled in the future": {reason: "clocks differ", next: hourly, di: newItem(withLastReconcileTime(&metav1.Time{Time: start.Add(time.Minute)})), after: 0, want: newHookResult(true, 61*time.Minute)},
		"item with a job":                        {reason: "only lastReconcileTime is read", next: hourly, di: newItem(withFinishedJob), after: 20 * time.Minute, want: newHookResult(true, 40*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := executeHook(t, continuousreconcile.Extension{Next: tc.next, MaxJitter: -1}, start.Add(tc.after), tc.di)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func withPhase(p lsv1alpha1.DeployItemPhase) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Status.Phase = p }
}

func withLastReconcileTime(at *metav1.Time) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = at }
}

func withActiveAnnotation(value string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Annotations = map[string]string{continuousreconcile.ActiveAnnotation: value}
	}
}

func withDeletion(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = &metav1.Time{Time: start} }

func withFinishedJob(di *lsv1alpha1.DeployItem) {
	di.Status.SetJobID("1")
	di.Status.JobIDFinished = "1"
}

// newOnceSchedule returns a schedule with a single run.
func newOnceSchedule(at time.Time) continuousreconcile.NextFunc {
	return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
		if last.Before(at) {
			return &at, nil
		}
		return nil, nil
	}
}

// newDelaySchedule returns a schedule whose next run is exactly d after the last run, without rounding.
func newDelaySchedule(d time.Duration) continuousreconcile.NextFunc {
	return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
		next := last.Add(d)
		return &next, nil
	}
}

// newFixedSchedule returns a schedule that returns the given time for any argument.
func newFixedSchedule(at time.Time) continuousreconcile.NextFunc {
	return func(context.Context, time.Time, *lsv1alpha1.DeployItem) (*time.Time, error) { return &at, nil }
}

func TestExtensionErrors(t *testing.T) {
	// failsAfter returns a schedule that fails for times after the given time.
	failsAfter := func(limit time.Time) continuousreconcile.NextFunc {
		return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
			if last.After(limit) {
				return nil, errBoom
			}
			next := last.Add(time.Hour)
			return &next, nil
		}
	}
	for name, tc := range map[string]struct {
		next continuousreconcile.NextFunc
		now  time.Time
	}{
		"error for the next time":      {next: failsAfter(start.Add(-time.Second)), now: start},
		"error for the period":         {next: failsAfter(start), now: start},
		"error for the following time": {next: failsAfter(start.Add(time.Hour)), now: start.Add(2 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := executeHook(t, continuousreconcile.Extension{Next: tc.next}, tc.now, newItem())
			if got != nil || !errors.Is(err, errBoom) {
				t.Fatalf("got %v and %v, want the error of next", got, err)
			}
			const want = "hook ShouldReconcile[0] (continuous-reconcile): boom"
			if err.Error() != want {
				t.Errorf("got %s, want %s", err, want)
			}
		})
	}
	t.Run("other hook types are rejected", func(t *testing.T) {
		for _, typ := range extension.AllHookTypes() {
			hook := continuousreconcile.ContinuousReconcileExtension(fromSpec(newEverySpec(time.Hour)))
			_, err := hook(t.Context(), logr.Discard(), nil, nil, typ)
			if (err == nil) != (typ == extension.ShouldReconcileHook) {
				t.Errorf("%s: got %v", typ, err)
			}
		}
	})
	t.Run("an Extension without Next has no hook, which Validate reports", func(t *testing.T) {
		setup := continuousreconcile.ContinuousReconcileExtensionSetup(nil)
		if err := (extension.ReconcileExtensionHooks{}).RegisterHookSetup(setup).Validate(); err == nil {
			t.Error("want an error")
		}
	})
	t.Run("the real clock is the default", func(t *testing.T) {
		setup := continuousreconcile.ContinuousReconcileExtensionSetup(fromSpec(newEverySpec(time.Hour)))
		if diff := cmp.Diff([]extension.HookType{extension.ShouldReconcileHook}, setup.HookTypes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		got, err := setup.Hook(t.Context(), logr.Discard(), newItem(withLastReconcileTime(&metav1.Time{Time: time.Unix(0, 0)})), nil, extension.ShouldReconcileHook)
		if err != nil || got == nil || got.AbortReconcile {
			t.Errorf("got %v and %v, want a run", got, err)
		}
	})
}

// findDueTime returns the first second at which the hook forces a run.
func findDueTime(t *testing.T, e continuousreconcile.Extension, di *lsv1alpha1.DeployItem) time.Time {
	t.Helper()
	got, err := executeHook(t, e, start, di)
	if err != nil || got == nil || !got.AbortReconcile {
		t.Fatalf("got %v and %v, want a wait", got, err)
	}
	return start.Add(got.ReconcileResult.RequeueAfter)
}

func TestJitter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   *cr.ContinuousReconcileSpec
		max    time.Duration
		limit  time.Duration
	}{
		"jitter of a tenth of the period":    {reason: "short periods", spec: newEverySpec(10 * time.Minute), limit: time.Minute},
		"jitter of five minutes":             {reason: "long periods", spec: newEverySpec(24 * time.Hour), limit: 5 * time.Minute},
		"jitter with a limit of the options": {reason: "the option", spec: newEverySpec(24 * time.Hour), max: time.Hour, limit: time.Hour},
		"no jitter below one second":         {reason: "whole seconds", spec: newEverySpec(9 * time.Second), limit: time.Second},
		"jitter that is turned off":          {reason: "the option", spec: newEverySpec(24 * time.Hour), max: -1, limit: time.Second},
		"jitter of a cron expression":        {reason: "the period, not the rest of it", spec: newCronSpec("21 * * * *"), limit: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			e := continuousreconcile.Extension{Next: fromSpec(tc.spec), MaxJitter: tc.max}
			next, err := e.Next(t.Context(), start, nil)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[time.Duration]bool{}
			for i := range 500 {
				di := newItem(func(di *lsv1alpha1.DeployItem) { di.UID = types.UID(fmt.Sprintf("uid-%d", i)) })
				late := findDueTime(t, e, di).Sub(*next)
				if late < 0 || late >= tc.limit {
					t.Fatalf("%s: %s late, want less than %s", tc.reason, late, tc.limit)
				}
				seen[late] = true
			}
			// If there are only 60 possible times, 500 items use nearly all of them. If there are many possible times,
			// nearly every item has a different time.
			if most := min(int(tc.limit/time.Second), 500); len(seen) < most/2 {
				t.Errorf("%s: got only %d different times below %s", tc.reason, len(seen), tc.limit)
			}
		})
	}
	t.Run("items without UID are spread by name", func(t *testing.T) {
		seen := map[time.Time]bool{}
		for i := range 50 {
			di := newItem(func(di *lsv1alpha1.DeployItem) { di.UID, di.Name = "", fmt.Sprint(i) })
			seen[findDueTime(t, continuousreconcile.Extension{Next: fromSpec(newEverySpec(24 * time.Hour))}, di)] = true
		}
		if len(seen) < 25 {
			t.Errorf("got only %d different times", len(seen))
		}
	})
}

// FuzzDueTimeStays checks that the due time of an item does not depend on when the hook is called.
func FuzzDueTimeStays(f *testing.F) {
	f.Add("uid", int64(0), uint32(3600), "", uint32(10), uint32(4000))
	f.Add("", int64(1e9), uint32(1), "*/7 3 * * 1-5", uint32(0), uint32(1<<30))
	f.Add("0", int64(0), uint32(3600), "0 0 1 A 0", uint32(10), uint32(4000))
	f.Add("uid", int64(-5e9), uint32(0), "CRON_TZ=Europe/Berlin 30 2 * * *", uint32(7), uint32(86400))
	f.Fuzz(func(t *testing.T, uid string, last int64, seconds uint32, line string, first, second uint32) {
		spec := newCronSpec(line)
		if line == "" {
			spec = newEverySpec(time.Duration(seconds) * time.Second)
		}
		if _, err := continuousreconcile.ParseSchedule(spec); err != nil {
			return
		}
		at := time.Unix(last%(1<<33), 0)
		di := newItem(withLastReconcileTime(&metav1.Time{Time: at}), func(di *lsv1alpha1.DeployItem) { di.UID = types.UID(uid) })
		e := continuousreconcile.Extension{Next: fromSpec(spec)}
		one, two := at.Add(time.Duration(min(first, second))*time.Second), at.Add(time.Duration(max(first, second))*time.Second)
		atOne, err := executeHook(t, e, one, di)
		if err != nil {
			t.Fatal(err)
		}
		atTwo, err := executeHook(t, e, two, di)
		if err != nil {
			t.Fatal(err)
		}
		if (atOne == nil) != (atTwo == nil) {
			t.Fatalf("got %v at %s and %v at %s", atOne, one, atTwo, two)
		}
		if atOne != nil && atOne.AbortReconcile {
			due := one.Add(atOne.ReconcileResult.RequeueAfter)
			if atTwo.AbortReconcile != two.Before(due) {
				t.Errorf("due at %s, at %s got %v", due, two, atTwo)
			}
			if atTwo.AbortReconcile && !two.Add(atTwo.ReconcileResult.RequeueAfter).Equal(due) {
				t.Errorf("due at %s, later at %s", due, two.Add(atTwo.ReconcileResult.RequeueAfter))
			}
		}
		if atOne != nil && !atOne.AbortReconcile && atTwo.AbortReconcile {
			t.Error("the run was due and is no longer due")
		}
	})
}
