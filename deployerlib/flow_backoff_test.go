// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// triggerRepeatedly triggers the item every 20 ms for the given time, and reconciles it after each trigger, and also
// whenever an earlier reconcile requested it. The function `also` is called with each trigger.
func (w *testEnv) triggerRepeatedly(span time.Duration, also func()) {
	w.t.Helper()
	due := map[bool]time.Time{}
	pop := func() {
		res := w.reconcile()
		delete(due, true)
		if res.RequeueAfter > 0 {
			due[true] = w.clock.Now().Add(res.RequeueAfter)
		}
	}
	for end := w.clock.Now().Add(span); w.clock.Now().Before(end); w.clock.Step(20 * time.Millisecond) {
		also()
		w.Trigger(key)
		pop()
		for range 20 { // a requeue without a delay
			if at, planned := due[true]; !planned || at.After(w.clock.Now().Add(time.Millisecond)) {
				break
			}
			pop()
		}
	}
}

func TestBackoffPrecedesTriggers(t *testing.T) {
	config := deployerlib.NewConfigError("spec.config", "is odd")
	onlyHooks := errors.New("the hook failed")
	cases := map[string]struct {
		reason  string
		objects []client.Object
		answer  error // of the deployer
		hook    error // of the hook
	}{
		"Background":       {"the deployer fails in a background run", newItems(withFinishedJob("1", phases.Succeeded)), errBoom, nil},
		"BackgroundConfig": {"the deployer fails for good in a background run", newItems(withFinishedJob("1", phases.Succeeded)), config, nil},
		"Job":              {"the deployer fails in a job", newItems(withJob("1")), errBoom, nil},
		"JobConfig":        {"a job ends with an error, and hooks force background runs", newItems(withJob("1")), config, nil},
		"Annotation":       {"a forced run fails under the annotation revision", newItems(withFinishedRun(phases.Succeeded)), errBoom, nil},
		"Hook":             {"a hook fails although no run is due", newItems(withFinishedJob("1", phases.Succeeded)), nil, onlyHooks},
	}
	for name, tc := range cases {
		t.Run(name+": no trigger starts a run before the backoff of a failed item has passed [F65]", func(t *testing.T) {
			w := newTestEnv(t, tc.objects, withHooks(extension.ShouldReconcileHook), withArgs(func(args *deployerlib.DeployerArgs) {
				args.Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}
			}))
			hooks := 0
			w.hooks.SetHookAnswer("hook", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
				hooks++
				return &extension.HookResult{}, tc.hook
			})
			calls := 0
			w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				calls++
				return tc.answer
			})
			w.triggerRepeatedly(100*time.Second, func() {})
			// 100 ms, 200 ms, … double up to 51.2 s, so 11 attempts fit, and one more because of the jitter.
			if calls > 12 || hooks > 14 {
				t.Errorf("%s: %d calls of the deployer and %d of the hook in 100 s, want at most 12 and 14", tc.reason, calls, hooks)
			}
			if calls+hooks < 8 {
				t.Errorf("%s: only %d calls of the deployer and %d of the hook in 100 s", tc.reason, calls, hooks)
			}
		})
	}
}

func TestFinalBackgroundFailureIsNotRetried(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer error
		most   int // calls in a day
		least  int
	}{
		"Config": {"a configuration error cannot go away by itself", deployerlib.NewConfigError("spec.config", "is odd"), 1, 1},
		"Other":  {"another error may go away", errBoom, 400, 20},
	}
	for name, tc := range cases {
		t.Run(name+": without a change, only a transient failure is retried in the background [F65]", func(t *testing.T) {
			w := newTestEnv(t, newItems(withFinishedJob("1", phases.Failed)), withHooks(extension.ShouldReconcileHook))
			w.setHookResult(extension.ShouldReconcileHook, &extension.HookResult{}, nil) // like a deployer that has returned its triggers
			w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(tc.answer))
			for end := w.clock.Now().Add(24 * time.Hour); w.clock.Now().Before(end); {
				res := w.reconcile()
				if res.RequeueAfter <= 0 {
					break
				}
				w.clock.Step(res.RequeueAfter)
			}
			if got := len(w.listActions()); got > tc.most || got < tc.least {
				t.Errorf("%s: %d calls in a day, want %d to %d", tc.reason, got, tc.least, tc.most)
			}
		})
	}
}

func TestDeadlineKeepsTheBackoff(t *testing.T) {
	t.Run("the deadline of a background run does not postpone the next attempt [F65]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(extension.ShouldReconcileHook), withArgs(func(args *deployerlib.DeployerArgs) {
			args.Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}
		}))
		w.setHookResult(extension.ShouldReconcileHook, &extension.HookResult{}, nil) // like a deployer that has returned its triggers
		var last time.Time
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if gap := w.clock.Since(last); !last.IsZero() && gap > 11*time.Minute {
				t.Errorf("%s between two attempts, want at most 10m, plus the jitter", gap)
			}
			last = w.clock.Now()
			return errBoom
		})
		w.reconcileUntil(24 * time.Hour)
		if n := len(w.listActions()); n < 24*6 {
			t.Errorf("%d attempts in a day, want at least %d", n, 24*6)
		}
	})
}

func TestBackoffExceptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		does   func(w *testEnv)
		runs   int
	}{
		"Trigger": {"a trigger must wait", func(w *testEnv) { w.Trigger(key) }, 0},
		"Change": {"the item changed", func(w *testEnv) {
			w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }))
		}, 1},
		"Job": {"a new job", func(w *testEnv) {
			w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobID = "2" }))
		}, 1},
		"Target": {"its Target changed", func(w *testEnv) {
			w.HandleTargetUpdate(w.t.Context(), newTarget("yours"), newChangedTarget(func(t *lsv1alpha1.Target) { t.Spec.Type = "other" }))
		}, 1},
		"TargetLabels": {"only labels and annotations of its Target changed [F69]", func(w *testEnv) {
			w.HandleTargetUpdate(w.t.Context(), newTarget("yours"), newChangedTarget(func(t *lsv1alpha1.Target) {
				t.Labels, t.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			}))
		}, 0},
		"Context": {"its Context changed", func(w *testEnv) {
			w.HandleContextUpdate(w.t.Context(), newChangedContext(func(*lsv1alpha1.Context) {}), newChangedContext(func(c *lsv1alpha1.Context) { c.ComponentVersionOverwritesReference = "other" }))
		}, 1},
		"ContextLabels": {"only labels and annotations of its Context changed [F69]", func(w *testEnv) {
			w.HandleContextUpdate(w.t.Context(), newChangedContext(func(*lsv1alpha1.Context) {}), newChangedContext(func(c *lsv1alpha1.Context) {
				c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			}))
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name+": only a change that may resolve the failure starts a run during the backoff [F65]", func(t *testing.T) {
			w := newTestEnv(t, append(newItems(withFinishedJob("1", phases.Succeeded), withTarget), newTarget("yours")), withHooks(extension.ShouldReconcileHook))
			w.setHookResult(extension.ShouldReconcileHook, &extension.HookResult{}, nil)
			w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(errBoom))
			w.reconcile()
			w.expectCalls(contract.ActionReconcile)
			w.clock.Step(100 * time.Millisecond)
			tc.does(w)
			w.reconcile()
			if got := len(w.listActions()) - 1; got != tc.runs {
				t.Errorf("%s: %d runs, want %d", tc.reason, got, tc.runs)
			}
		})
	}
}

// newChangedTarget returns a changed copy of the Target "target".
func newChangedTarget(change func(*lsv1alpha1.Target)) *lsv1alpha1.Target {
	t := newTarget("yours")
	change(t)
	return t
}

// newChangedContext returns a changed copy of the Context "default".
func newChangedContext(change func(*lsv1alpha1.Context)) *lsv1alpha1.Context {
	c := &lsv1alpha1.Context{}
	c.Namespace, c.Name = ns, lsv1alpha1.DefaultContextName
	change(c)
	return c
}

func TestTargetSelectorsReadLabels(t *testing.T) {
	labelled := newChangedTarget(func(t *lsv1alpha1.Target) { t.Labels = map[string]string{"env": "mine"} })
	annotated := newChangedTarget(func(t *lsv1alpha1.Target) { t.Labels, t.Annotations = labelled.Labels, map[string]string{"a": "b"} })
	for name, tc := range map[string]struct {
		old, now *lsv1alpha1.Target
		queued   bool
	}{
		"a label that a selector requires": {newTarget("yours"), labelled, true},
		"another annotation":               {labelled, annotated, false},
	} {
		t.Run(name+" of a Target matters only if another set of selectors matches [F69]", func(t *testing.T) {
			w := newTestEnv(t, append(newItems(withJob("1"), withTarget), newTarget("yours")), withSelector())
			w.HandleTargetUpdate(t.Context(), tc.old, tc.now)
			if _, queued := w.ListQueued()[key]; queued != tc.queued {
				t.Errorf("the item is queued: %t, want %t", queued, tc.queued)
			}
		})
	}
}

func TestMinInterval(t *testing.T) {
	t.Run("triggers start at most one background run per second, and the last trigger is not lost [F66]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(extension.ShouldReconcileHook))
		wanted, handled := 0, 0
		w.hooks.SetHookAnswer("hook", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if wanted == handled {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			handled = wanted
			return deployerlib.ErrUnchanged
		})
		w.triggerRepeatedly(10*time.Second, func() { wanted++ })
		if n := len(w.listActions()); n < 9 || n > 11 {
			t.Errorf("%d runs in 10 s, want one per second", n)
		}
		res := w.reconcile()
		w.clock.Step(max(res.RequeueAfter, 0))
		w.reconcile()
		if handled != wanted {
			t.Errorf("the last trigger that a run has seen is number %d of %d", handled, wanted)
		}
	})
	t.Run("a run starts at once if none started in the last second [F66]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(extension.ShouldReconcileHook))
		w.setHookResult(extension.ShouldReconcileHook, &extension.HookResult{}, nil)
		for n := range 3 {
			w.Trigger(key)
			w.reconcile()
			if got := len(w.listActions()); got != n+1 {
				t.Fatalf("%d runs after %d triggers", got, n+1)
			}
			w.clock.Step(time.Second)
		}
	})
}

func TestTriggersInAJob(t *testing.T) {
	t.Run("changes of the labels do not shorten the interval [F66]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(extension.ShouldReconcileHook))
		w.setHookResult(extension.ShouldReconcileHook, &extension.HookResult{}, nil)
		for i := range 100 {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"n": strconv.Itoa(i)} })
			w.Trigger(key)
			w.reconcile()
			w.clock.Step(100 * time.Millisecond)
		}
		if n := len(w.listActions()); n < 9 || n > 11 {
			t.Errorf("%d runs in 10 s, want one per second", n)
		}
	})
	t.Run("triggers in a job start ten calls in quick succession and then one per second [F66]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnWaitFor("a pod", time.Hour))
		w.triggerRepeatedly(time.Second, func() {})
		if n := len(w.listActions()); n < 10 || n > 12 {
			t.Errorf("%d calls in the first second, want about 10", n)
		}
		w.triggerRepeatedly(10*time.Second, func() {})
		if n := len(w.listActions()); n < 19 || n > 22 {
			t.Errorf("%d calls in 11 s, want about 20", n)
		}
		w.clock.Step(time.Minute)
		before := len(w.listActions())
		w.triggerRepeatedly(200*time.Millisecond, func() {})
		if n := len(w.listActions()) - before; n != 10 {
			t.Errorf("%d calls after a quiet minute, want 10", n)
		}
	})
}

func TestShortDelays(t *testing.T) {
	cases := map[string]struct {
		option  string
		objects []client.Object
		answer  landscapertest.Answer
		hook    *extension.HookResult
		most    int
	}{
		"WaitFor":         {"WaitFor", newItems(withJob("1")), landscapertest.ReturnWaitFor("a pod", 1), nil, 61},
		"WaitInAnEndHook": {"RequeueAfter of a hook", newItems(withFinishedJob("1", phases.Succeeded)), landscapertest.ReturnError(nil), newHookResult(false, 1), 71},
	}
	for name, tc := range cases {
		t.Run(name+": a delay of less than one second is raised to one second, with one warning [F67]", func(t *testing.T) {
			w := newTestEnv(t, tc.objects, withHooks(extension.ShouldReconcileHook))
			w.setHookResult(extension.ShouldReconcileHook, tc.hook, nil)
			w.fake.SetDefaultAnswer(contract.ActionReconcile, tc.answer)
			var warnings []string
			w.log = funcr.New(func(_, args string) {
				if strings.Contains(args, "Warning:") {
					warnings = append(warnings, args)
				}
			}, funcr.Options{})
			w.reconcileUntil(time.Minute)
			if n := len(w.listActions()); n > tc.most || n < 50 {
				t.Errorf("%d calls in a minute, want 50 to %d", n, tc.most)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], tc.option) {
				t.Errorf("got the warnings %q, want one that names %q", warnings, tc.option)
			}
		})
	}
}

func TestEarlyReconcileKeepsPriority(t *testing.T) {
	t.Run("a job that a trigger takes from the queue too early keeps the priority of a job [F68]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(errBoom))
		w.reconcile()
		w.Trigger(key)
		if res := w.reconcile(); res.RequeueAfter <= 0 || res.Priority == nil || *res.Priority != 0 {
			t.Errorf("got the requeue %+v, want the priority 0", res)
		}
	})
}

func TestScheduleOfInvalidConfiguration(t *testing.T) {
	broken := deployerlib.NewConfigError("spec.config.replicas", "must be a number")
	next := continuousreconcile.FromSpec(func(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
		if di.Labels["fixed"] == "" {
			return nil, fmt.Errorf("read the schedule: %w", broken)
		}
		return nil, nil
	})
	for name, objects := range map[string][]client.Object{"job-ID": newItems(withFinishedJob("1", phases.Failed)), "annotation": newItems(withFinishedRun(phases.Failed))} {
		t.Run(name+": a schedule hook with an invalid configuration is not retried until the item changes [F85]", func(t *testing.T) {
			calls := 0
			w := newTestEnv(t, objects, func(w *testEnv, _ *deployerlib.DeployerArgs) {
				hook := continuousreconcile.Extension{Next: next, Clock: w.clock}.Hook()
				w.fake.RegisterHook(func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
					calls++
					return hook(ctx, log, di, target, t)
				}, extension.ShouldReconcileHook)
			})
			w.reconcileUntil(10 * time.Hour)
			if calls != 1 {
				t.Errorf("the hook was called %d times in 10 h, want once", calls)
			}
			const want = "read the schedule: spec.config.replicas: must be a number"
			message := ""
			if c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionBackground); c != nil {
				message = c.Message
			} else if e := w.getItem().Status.LastError; e != nil {
				message = e.Message
			}
			if message != want {
				t.Errorf("the item shows %q, want %q", message, want)
			}
			w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"fixed": "true"} }))
			w.reconcileUntil(time.Hour)
			if c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionBackground); calls < 2 || c != nil {
				t.Errorf("after a change of the item: %d calls of the hook, condition %+v", calls, c)
			}
		})
	}
}
