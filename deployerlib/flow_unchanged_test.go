// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
)

// withBackgroundCondition adds a BackgroundReconcile condition to the item.
func withBackgroundCondition(status lsv1alpha1.ConditionStatus, reason string) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = contract.SetCondition(di.Status.Conditions, contract.ConditionBackground, status, reason, "m", t0)
	}
}

// withProviderStatus adds a provider status to the item.
func withProviderStatus(di *lsv1alpha1.DeployItem) {
	di.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Some", "a": 1})
}

func TestUnchangedBackgroundRun(t *testing.T) {
	nothing, unchanged := landscapertest.ReturnNil(), landscapertest.ReturnError(deployerlib.ErrUnchanged)
	reordered := func(_ context.Context, in landscapertest.Input) error {
		in.Item.Status.ProviderStatus = &runtime.RawExtension{Raw: json.RawMessage(`{ "kind":"Some", "a":1, "apiVersion":"v1" }`)}
		return nil
	}
	grows := func(_ context.Context, in landscapertest.Input) error {
		in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Some", "a": 2})
		return nil
	}
	label := func(ctx context.Context, _ landscapertest.Input) error {
		patch.FromContext(ctx).Labels().Set("a", "b")
		return nil
	}
	status := []string{"patch status"}
	tests := map[string]struct {
		changes []itemOption
		does    landscapertest.Answer
		returns landscapertest.Answer
		sent    []string
		moves   bool // whether lastReconcileTime changes
	}{
		"writes nothing": {nil, nothing, unchanged, nil, false},
		"writes nothing after an earlier success":                  {[]itemOption{withBackgroundCondition("False", "Succeeded")}, nothing, unchanged, nil, false},
		"writes nothing for an equal status with another encoding": {nil, reordered, unchanged, nil, false},
		"shows that no background run is pending any more":         {[]itemOption{withBackgroundCondition("True", "Failed")}, nothing, unchanged, status, true},
		"shows a success after a timeout":                          {[]itemOption{withBackgroundCondition("False", "TimedOut")}, nothing, unchanged, status, true},
		"shows that the hooks succeed again":                       {[]itemOption{withBackgroundCondition("Unknown", "HookFailed")}, nothing, unchanged, status, true},
		"stores changes to the item in memory":                     {nil, grows, unchanged, status, true},
		"stores only recorded changes":                             {nil, label, unchanged, []string{"patch"}, false},
		"only removes force-reconcile":                             {[]itemOption{withOperation(lsv1alpha1.ForceReconcileOperation)}, nothing, unchanged, []string{"patch"}, false},
		"writes once when the call returns nil":                    {nil, nothing, nothing, status, true},
		"writes once when the call also waits":                     {nil, nothing, landscapertest.ReturnError(errors.Join(deployerlib.ErrUnchanged, deployerlib.WaitFor("a", time.Hour))), status, true},
		"writes once when the call also fails":                     {nil, nothing, landscapertest.ReturnError(errors.Join(deployerlib.ErrUnchanged, errBoom)), status, true},
		"writes once when the call sets a phase that is not final": {nil, landscapertest.SetPhase(phases.Progressing), unchanged, status, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(append([]itemOption{withFinishedJob("1", phases.Succeeded), withProviderStatus}, test.changes...)...), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
			action := contract.ActionReconcile
			if w.getItem().Annotations[lsv1alpha1.OperationAnnotation] != "" {
				action = contract.ActionForceReconcile
			}
			w.fake.QueueAnswers(action, landscapertest.RunInOrder(test.does, test.returns))
			before := w.getItem()
			w.runAttempt()
			w.expectCalls(action)
			w.expectRequests(test.sent...)
			after := w.getItem()
			if moved := !before.Status.LastReconcileTime.Equal(after.Status.LastReconcileTime); moved != test.moves {
				t.Errorf("lastReconcileTime moved: %t, want %t", moved, test.moves)
			}
			if written := after.ResourceVersion != before.ResourceVersion; written != (len(test.sent) > 0) {
				t.Errorf("resourceVersion went from %s to %s", before.ResourceVersion, after.ResourceVersion)
			}
		})
	}
	t.Run("an unchanged background run calls the End hooks", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
		w.setHookResult(extension.EndHook, newHookResult(false, time.Hour), nil)
		w.fake.QueueAnswers(contract.ActionReconcile, unchanged)
		if ended := w.runAttempt(); ended.Result.RequeueAfter != time.Hour {
			t.Errorf("got the requeue %s, want the delay that the End hook requested", ended.Result.RequeueAfter)
		}
		w.expectRequests()
	})
	t.Run("an unchanged background run fails when an End hook fails", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
		w.setHookResult(extension.EndHook, nil, errBoom)
		w.fake.QueueAnswers(contract.ActionReconcile, unchanged)
		w.runAttempt()
		if c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionBackground); c == nil || c.Status != "True" {
			t.Errorf("got the condition %+v, want a pending background run", c)
		}
	})
	t.Run("an unchanged background run resets the backoff", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
		fail := landscapertest.ReturnError(errBoom)
		w.fake.QueueAnswers(contract.ActionReconcile, fail, fail, fail, unchanged, fail)
		var waits []time.Duration
		for range 5 {
			waits = append(waits, w.runAttempt().Queue.RequeueAfter)
		}
		if waits[2] < 2*waits[0] || waits[3] != 0 || waits[4] >= waits[2]/2 {
			t.Errorf("waits %v, want them to grow and to be reset after the fourth one", waits)
		}
	})
}

func TestUnchangedRequestedRun(t *testing.T) {
	unchanged := landscapertest.ReturnError(deployerlib.ErrUnchanged)
	for name, di := range map[string]itemOption{
		"ErrUnchanged ends a job like nil":             withJob("1"),
		"ErrUnchanged ends an annotation run like nil": func(*lsv1alpha1.DeployItem) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(di))
			w.fake.QueueAnswers(contract.ActionReconcile, unchanged)
			w.runAttempt()
			s := w.getItem().Status
			if s.Phase != phases.Succeeded || s.JobID != s.JobIDFinished || s.LastError != nil {
				t.Errorf("phase %s, job %q/%q, error %v", s.Phase, s.JobID, s.JobIDFinished, s.LastError)
			}
		})
	}
	t.Run("ErrUnchanged does not finish a deletion", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), withProviderStatus, withDeletion))
		w.fake.QueueAnswers(contract.ActionDelete, unchanged)
		w.runAttempt()
		if di := w.getItem(); di == nil || di.Status.LastError == nil {
			t.Error("Delete returned ErrUnchanged, but the item was removed or shows no error")
		}
	})
}
