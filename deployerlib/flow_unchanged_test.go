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

// shows adds a BackgroundReconcile condition to the item.
func shows(status lsv1alpha1.ConditionStatus, reason string) change {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = contract.SetCondition(di.Status.Conditions, contract.ConditionBackground, status, reason, "m", t0)
	}
}

// known adds a provider status to the item.
func known(di *lsv1alpha1.DeployItem) {
	di.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Some", "a": 1})
}

func TestUnchangedBackgroundRun(t *testing.T) {
	nothing, unchanged := landscapertest.Done(), landscapertest.Fail(deployerlib.ErrUnchanged)
	reordered := func(_ context.Context, in landscapertest.Input) error {
		in.Item.Status.ProviderStatus = &runtime.RawExtension{Raw: json.RawMessage(`{ "kind":"Some", "a":1, "apiVersion":"v1" }`)}
		return nil
	}
	grows := func(_ context.Context, in landscapertest.Input) error {
		in.Item.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Some", "a": 2})
		return nil
	}
	label := func(ctx context.Context, _ landscapertest.Input) error {
		patch.FromContext(ctx).Labels().Set("a", "b")
		return nil
	}
	status := []string{"patch status"}
	tests := map[string]struct {
		changes []change
		does    landscapertest.Answer
		returns landscapertest.Answer
		sent    []string
		moves   bool // whether lastReconcileTime changes
	}{
		"writes nothing": {nil, nothing, unchanged, nil, false},
		"writes nothing after an earlier success":                  {[]change{shows("False", "Succeeded")}, nothing, unchanged, nil, false},
		"writes nothing for an equal status with another encoding": {nil, reordered, unchanged, nil, false},
		"shows that no background run is pending any more":         {[]change{shows("True", "Failed")}, nothing, unchanged, status, true},
		"shows a success after a timeout":                          {[]change{shows("False", "TimedOut")}, nothing, unchanged, status, true},
		"shows that the hooks succeed again":                       {[]change{shows("Unknown", "HookFailed")}, nothing, unchanged, status, true},
		"stores changes to the item in memory":                     {nil, grows, unchanged, status, true},
		"stores only recorded changes":                             {nil, label, unchanged, []string{"patch"}, false},
		"only removes force-reconcile":                             {[]change{operation(lsv1alpha1.ForceReconcileOperation)}, nothing, unchanged, []string{"patch"}, false},
		"writes once when the call returns nil":                    {nil, nothing, nothing, status, true},
		"writes once when the call also waits":                     {nil, nothing, landscapertest.Fail(errors.Join(deployerlib.ErrUnchanged, deployerlib.WaitFor("a", time.Hour))), status, true},
		"writes once when the call also fails":                     {nil, nothing, landscapertest.Fail(errors.Join(deployerlib.ErrUnchanged, errBoom)), status, true},
		"writes once when the call sets a phase that is not final": {nil, landscapertest.Phase(phases.Progressing), unchanged, status, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, items(append([]change{finishedJob("1", phases.Succeeded), known}, test.changes...)...), withHooks())
			w.on(extension.ShouldReconcileHook, result(false, 0), nil)
			action := contract.ActionReconcile
			if w.stored().Annotations[lsv1alpha1.OperationAnnotation] != "" {
				action = contract.ActionForceReconcile
			}
			w.fake.On(action, landscapertest.InTurn(test.does, test.returns))
			before := w.stored()
			w.pass()
			w.wantCalls(action)
			w.wantSent(test.sent...)
			after := w.stored()
			if moved := !before.Status.LastReconcileTime.Equal(after.Status.LastReconcileTime); moved != test.moves {
				t.Errorf("lastReconcileTime moved: %t, want %t", moved, test.moves)
			}
			if written := after.ResourceVersion != before.ResourceVersion; written != (len(test.sent) > 0) {
				t.Errorf("resourceVersion went from %s to %s", before.ResourceVersion, after.ResourceVersion)
			}
		})
	}
	t.Run("an unchanged background run calls the End hooks", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks())
		w.on(extension.ShouldReconcileHook, result(false, 0), nil)
		w.on(extension.EndHook, result(false, time.Hour), nil)
		w.fake.On(contract.ActionReconcile, unchanged)
		if ended := w.pass(); ended.Result.RequeueAfter != time.Hour {
			t.Errorf("got the requeue %s, want the delay that the End hook requested", ended.Result.RequeueAfter)
		}
		w.wantSent()
	})
	t.Run("an unchanged background run fails when an End hook fails", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks())
		w.on(extension.ShouldReconcileHook, result(false, 0), nil)
		w.on(extension.EndHook, nil, errBoom)
		w.fake.On(contract.ActionReconcile, unchanged)
		w.pass()
		if c := contract.GetCondition(w.stored().Status.Conditions, contract.ConditionBackground); c == nil || c.Status != "True" {
			t.Errorf("got the condition %+v, want a pending background run", c)
		}
	})
	t.Run("an unchanged background run resets the backoff", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks())
		w.on(extension.ShouldReconcileHook, result(false, 0), nil)
		fail := landscapertest.Fail(errBoom)
		w.fake.On(contract.ActionReconcile, fail, fail, fail, unchanged, fail)
		var waits []time.Duration
		for range 5 {
			waits = append(waits, w.pass().Queue.RequeueAfter)
		}
		if waits[2] < 2*waits[0] || waits[3] != 0 || waits[4] >= waits[2]/2 {
			t.Errorf("waits %v, want them to grow and to be reset after the fourth one", waits)
		}
	})
}

func TestUnchangedRequestedRun(t *testing.T) {
	unchanged := landscapertest.Fail(deployerlib.ErrUnchanged)
	for name, di := range map[string]change{
		"ErrUnchanged ends a job like nil":             job("1"),
		"ErrUnchanged ends an annotation run like nil": func(*lsv1alpha1.DeployItem) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, items(di))
			w.fake.On(contract.ActionReconcile, unchanged)
			w.pass()
			s := w.stored().Status
			if s.Phase != phases.Succeeded || s.JobID != s.JobIDFinished || s.LastError != nil {
				t.Errorf("phase %s, job %q/%q, error %v", s.Phase, s.JobID, s.JobIDFinished, s.LastError)
			}
		})
	}
	t.Run("ErrUnchanged does not finish a deletion", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Succeeded), known, deleted))
		w.fake.On(contract.ActionDelete, unchanged)
		w.pass()
		if di := w.stored(); di == nil || di.Status.LastError == nil {
			t.Error("Delete returned ErrUnchanged, but the item was removed or shows no error")
		}
	})
}
