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

// item returns an item that was last reconciled at the time in the variable `start`.
func item(change ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID = "a5f4"
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	di.Status.LastReconcileTime = &metav1.Time{Time: start}
	for _, f := range change {
		f(di)
	}
	return di
}

func fromSpec(spec *cr.ContinuousReconcileSpec) continuousreconcile.Next {
	return continuousreconcile.FromSpec(func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, nil })
}

// ask executes the hook in the same way as deployerlib.
func ask(t *testing.T, e continuousreconcile.Extension, now time.Time, di *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
	t.Helper()
	e.Clock = clocktesting.NewFakePassiveClock(now)
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(e.Setup())
	return hooks.ExecuteHooks(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook)
}

func answer(abort bool, after time.Duration) *extension.HookResult {
	priority := -50
	return &extension.HookResult{AbortReconcile: abort, ReconcileResult: reconcile.Result{RequeueAfter: after, Priority: &priority}}
}

func TestExtension(t *testing.T) {
	hourly := fromSpec(every(time.Hour))
	for name, tc := range map[string]struct {
		reason string
		next   continuousreconcile.Next
		di     *lsv1alpha1.DeployItem
		after  time.Duration // time since start
		want   *extension.HookResult
	}{
		"not due":                                {reason: "requeue at the next time", next: hourly, di: item(), after: 20 * time.Minute, want: answer(true, 40*time.Minute)},
		"almost due":                             {reason: "requeue at the next time", next: hourly, di: item(), after: time.Hour - 1, want: answer(true, 1)},
		"due":                                    {reason: "run, and requeue at the next time", next: hourly, di: item(), after: time.Hour, want: answer(false, time.Hour)},
		"overdue":                                {reason: "the next one counts from now", next: hourly, di: item(), after: 90*time.Minute + time.Second/4, want: answer(false, time.Hour-time.Second/4)},
		"overdue with another function":          {reason: "lastReconcileTime has whole seconds", next: later(time.Hour), di: item(), after: 90*time.Minute + time.Second/4, want: answer(false, time.Hour-time.Second/4)},
		"due by cron":                            {reason: "the next full hour", next: fromSpec(crontab("0 * * * *")), di: item(), after: 50 * time.Minute, want: answer(false, 49*time.Minute+30*time.Second)},
		"due after a failed run":                 {reason: "schedules are for failed items, too", next: hourly, di: item(phase(lsv1alpha1.DeployItemPhases.Failed)), after: time.Hour, want: answer(false, time.Hour)},
		"nil item [Lx5]":                         {reason: "no panic", next: hourly, di: nil, after: time.Hour},
		"item that was never reconciled [Lx5]":   {reason: "no panic, not due", next: hourly, di: item(lastReconcileTime(nil)), after: time.Hour},
		"item with a zero time [Lx5]":            {reason: "not due", next: hourly, di: item(lastReconcileTime(&metav1.Time{})), after: time.Hour},
		"schedule that is turned off [Lx4]":      {reason: "no result", next: hourly, di: item(active("false")), after: time.Hour},
		"schedule that is turned on [Lx4]":       {reason: "the same as without the annotation", next: hourly, di: item(active("true")), after: time.Hour, want: answer(false, time.Hour)},
		"item that is being deleted":             {reason: "no result", next: hourly, di: item(deleted), after: time.Hour},
		"item without a schedule":                {reason: "no result", next: fromSpec(nil), di: item(), after: time.Hour},
		"schedule with one run":                  {reason: "one run without a requeue", next: once(start.Add(time.Minute)), di: item(), after: time.Hour, want: answer(false, 0)},
		"schedule in the past":                   {reason: "a run without a requeue", next: always(start), di: item(), after: time.Hour, want: answer(false, 0)},
		"item that was reconciled in the future": {reason: "clocks differ", next: hourly, di: item(lastReconcileTime(&metav1.Time{Time: start.Add(time.Minute)})), after: 0, want: answer(true, 61*time.Minute)},
		"item with a job":                        {reason: "only lastReconcileTime is read", next: hourly, di: item(job), after: 20 * time.Minute, want: answer(true, 40*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, continuousreconcile.Extension{Next: tc.next, MaxJitter: -1}, start.Add(tc.after), tc.di)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func phase(p lsv1alpha1.DeployItemPhase) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Status.Phase = p }
}

func lastReconcileTime(at *metav1.Time) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = at }
}

func active(value string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Annotations = map[string]string{continuousreconcile.ActiveAnnotation: value}
	}
}

func deleted(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = &metav1.Time{Time: start} }

func job(di *lsv1alpha1.DeployItem) { di.Status.SetJobID("1"); di.Status.JobIDFinished = "1" }

// The function `once` returns a schedule with a single run.
func once(at time.Time) continuousreconcile.Next {
	return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
		if last.Before(at) {
			return &at, nil
		}
		return nil, nil
	}
}

// The function `later` returns a schedule whose next run is exactly d after the last run, without rounding.
func later(d time.Duration) continuousreconcile.Next {
	return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
		next := last.Add(d)
		return &next, nil
	}
}

// The function `always` returns a schedule that returns the given time for any argument.
func always(at time.Time) continuousreconcile.Next {
	return func(context.Context, time.Time, *lsv1alpha1.DeployItem) (*time.Time, error) { return &at, nil }
}

func TestExtensionErrors(t *testing.T) {
	// failsAfter returns a schedule that fails for times after the given time.
	failsAfter := func(limit time.Time) continuousreconcile.Next {
		return func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
			if last.After(limit) {
				return nil, errBoom
			}
			next := last.Add(time.Hour)
			return &next, nil
		}
	}
	for name, tc := range map[string]struct {
		next continuousreconcile.Next
		now  time.Time
	}{
		"error for the next time":      {next: failsAfter(start.Add(-time.Second)), now: start},
		"error for the period":         {next: failsAfter(start), now: start},
		"error for the following time": {next: failsAfter(start.Add(time.Hour)), now: start.Add(2 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, continuousreconcile.Extension{Next: tc.next}, tc.now, item())
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
		for _, typ := range extension.HookTypes() {
			hook := continuousreconcile.ContinuousReconcileExtension(fromSpec(every(time.Hour)))
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
		setup := continuousreconcile.ContinuousReconcileExtensionSetup(fromSpec(every(time.Hour)))
		if diff := cmp.Diff([]extension.HookType{extension.ShouldReconcileHook}, setup.HookTypes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		got, err := setup.Hook(t.Context(), logr.Discard(), item(lastReconcileTime(&metav1.Time{Time: time.Unix(0, 0)})), nil, extension.ShouldReconcileHook)
		if err != nil || got == nil || got.AbortReconcile {
			t.Errorf("got %v and %v, want a run", got, err)
		}
	})
}

// dueAt returns the first second at which the hook forces a run.
func dueAt(t *testing.T, e continuousreconcile.Extension, di *lsv1alpha1.DeployItem) time.Time {
	t.Helper()
	got, err := ask(t, e, start, di)
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
		"jitter of a tenth of the period":    {reason: "short periods", spec: every(10 * time.Minute), limit: time.Minute},
		"jitter of five minutes":             {reason: "long periods", spec: every(24 * time.Hour), limit: 5 * time.Minute},
		"jitter with a limit of the options": {reason: "the option", spec: every(24 * time.Hour), max: time.Hour, limit: time.Hour},
		"no jitter below one second":         {reason: "whole seconds", spec: every(9 * time.Second), limit: time.Second},
		"jitter that is turned off":          {reason: "the option", spec: every(24 * time.Hour), max: -1, limit: time.Second},
		"jitter of a cron expression":        {reason: "the period, not the rest of it", spec: crontab("21 * * * *"), limit: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			e := continuousreconcile.Extension{Next: fromSpec(tc.spec), MaxJitter: tc.max}
			next, err := e.Next(t.Context(), start, nil)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[time.Duration]bool{}
			for i := range 500 {
				di := item(func(di *lsv1alpha1.DeployItem) { di.UID = types.UID(fmt.Sprintf("uid-%d", i)) })
				late := dueAt(t, e, di).Sub(*next)
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
			di := item(func(di *lsv1alpha1.DeployItem) { di.UID, di.Name = "", fmt.Sprint(i) })
			seen[dueAt(t, continuousreconcile.Extension{Next: fromSpec(every(24 * time.Hour))}, di)] = true
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
		spec := crontab(line)
		if line == "" {
			spec = every(time.Duration(seconds) * time.Second)
		}
		if _, err := continuousreconcile.Schedule(spec); err != nil {
			return
		}
		at := time.Unix(last%(1<<33), 0)
		di := item(lastReconcileTime(&metav1.Time{Time: at}), func(di *lsv1alpha1.DeployItem) { di.UID = types.UID(uid) })
		e := continuousreconcile.Extension{Next: fromSpec(spec)}
		one, two := at.Add(time.Duration(min(first, second))*time.Second), at.Add(time.Duration(max(first, second))*time.Second)
		atOne, err := ask(t, e, one, di)
		if err != nil {
			t.Fatal(err)
		}
		atTwo, err := ask(t, e, two, di)
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
