// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
)

// newPatchingHook returns a hook that passes the patch of the context to the function `note`.
func newPatchingHook(note func(*patch.Patch), res *extension.HookResult, err error) landscapertest.HookAnswer {
	return func(ctx context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
		note(patch.FromContext(ctx))
		return res, err
	}
}

// newPatchingAction returns a deployer action that passes the patch of the context to the function `note`.
func newPatchingAction(note func(*patch.Patch)) landscapertest.Answer {
	return func(ctx context.Context, _ landscapertest.Input) error {
		note(patch.FromContext(ctx))
		return nil
	}
}

// addLabelAndCondition adds two changes to a patch: a label as a value, and a condition as a function.
func addLabelAndCondition(p *patch.Patch) {
	p.Labels().Set("team", "blue")
	p.Append(patch.Typed(addCondition))
}

func addCondition(di *lsv1alpha1.DeployItem) error {
	if contract.GetCondition(di.Status.Conditions, "Noted") == nil {
		di.Status.Conditions = contract.SetCondition(di.Status.Conditions, "Noted", lsv1alpha1.ConditionTrue, "Noted", "by a function", t0)
	}
	return nil
}

// expectLabelAndCondition checks that the item has the label and the condition that the function `both` adds.
func (w *testEnv) expectLabelAndCondition() {
	w.t.Helper()
	di := w.getItem()
	if di.Labels["team"] != "blue" || contract.GetCondition(di.Status.Conditions, "Noted") == nil {
		w.t.Errorf("labels %v, conditions %v", di.Labels, di.Status.Conditions)
	}
}

func TestRunningPatch(t *testing.T) {
	noFinalizer := func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil }
	tests := map[string]struct {
		item []client.Object
		hook extension.HookType
		want []string
	}{
		"changes before the start are written with the finalizer [K4]":               {newItems(withJob("1"), noFinalizer), extension.AfterResponsibilityCheckHook, []string{"patch status", "patch", "patch status"}},
		"changes before the start are written with the annotation":                   {newItems(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)), extension.ShouldReconcileHook, []string{"patch status", "patch", "patch status", "patch"}},
		"changes before the start of the next job are written with the start":        {newItems(withFinishedJob("1", phases.Succeeded), withJob("2")), extension.ShouldReconcileHook, []string{"patch status", "patch", "patch status"}},
		"changes before a call are written with the outcome [K3, K5]":                {newItems(withJob("1")), extension.BeforeReconcileHook, []string{"patch status", "patch status", "patch"}},
		"changes after a call are written with the outcome":                          {newItems(withJob("1")), extension.EndHook, []string{"patch status", "patch status", "patch"}},
		"changes in a run that another process started are written with the outcome": {newItems(withRunningJob("1", 0)), extension.BeforeAnyReconcileHook, []string{"patch", "patch status", "patch"}},
		"changes of an item with nothing to do are written":                          {newItems(withFinishedJob("1", phases.Succeeded)), extension.AfterResponsibilityCheckHook, []string{"patch status", "patch"}},
		"changes in an abort are written with the end of the run and the annotation": {newItems(withRunningJob("1", 0), withOperation(contract.AbortOperation)), extension.BeforeAbortHook, []string{"patch", "patch status", "patch"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, test.item, withHooks())
			w.hooks.SetHookAnswer("hook", test.hook, newPatchingHook(addLabelAndCondition, nil, nil))
			w.runAttempt()
			w.expectRequests(test.want...)
			w.expectLabelAndCondition()
			w.updateItem(func(di *lsv1alpha1.DeployItem) { withJob("3")(di) })
			w.runAttempt()
			w.expectLabelAndCondition()
			if got := len(w.popRequests()); got > 2 {
				t.Errorf("%d requests for the next job, which changes neither label nor condition", got)
			}
		})
	}
}

func TestRunningPatchIsAbsent(t *testing.T) {
	for _, hook := range []extension.HookType{extension.StartHook, extension.DuringResponsibilityCheckHook} {
		t.Run(string(hook), func(t *testing.T) {
			w := newTestEnv(t, newItems(withJob("1")), withHooks())
			found := true
			w.hooks.SetHookAnswer("hook", hook, func(ctx context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
				found = patch.FromContext(ctx) != nil
				return nil, nil
			})
			w.runAttempt()
			if found {
				t.Error("the context has a patch, although the item may belong to another deployer")
			}
		})
	}
}

// TestRunningPatchAfterErrors checks that recorded changes are written together with an error [K14].
func TestRunningPatchAfterErrors(t *testing.T) {
	fails := func(p *patch.Patch) landscapertest.Answer { return landscapertest.ReturnError(errBoom) }
	tests := map[string]struct {
		hook   extension.HookType
		err    error
		answer landscapertest.Answer
		want   []string
	}{
		"error of a hook":                {extension.BeforeReconcileHook, errBoom, nil, []string{"patch status", "patch status", "patch"}},
		"error of the first hook":        {extension.AfterResponsibilityCheckHook, errBoom, nil, []string{"patch status", "patch"}},
		"error of the deployer":          {extension.BeforeReconcileHook, nil, fails(nil), []string{"patch status", "patch status", "patch"}},
		"wait of the deployer":           {extension.BeforeReconcileHook, nil, landscapertest.ReturnWaitFor("pods", time.Minute), []string{"patch status", "patch status", "patch"}},
		"changes of the deployer itself": {"", nil, landscapertest.RunInOrder(newPatchingAction(addLabelAndCondition), landscapertest.ReturnError(errBoom)), []string{"patch status", "patch status", "patch"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(withJob("1")), withHooks())
			if test.hook != "" {
				w.hooks.SetHookAnswer("hook", test.hook, newPatchingHook(addLabelAndCondition, nil, test.err))
			}
			w.fake.SetDefaultAnswer(contract.ActionReconcile, test.answer)
			w.runAttempt()
			w.expectRequests(test.want...)
			w.expectLabelAndCondition()
			if name != "wait of the deployer" && w.getItem().Status.LastError == nil {
				t.Error("the error is not reported")
			}
		})
	}
	t.Run("changes are not sent before the call returns", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		sent := []string{}
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
			w.popRequests()
			addLabelAndCondition(patch.FromContext(ctx))
			sent = w.popRequests()
			return nil
		})
		w.runAttempt()
		if len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
		w.expectLabelAndCondition()
	})
}

// TestRunningPatchRejectsProtectedFields checks that a patch of a field that users must not change leads to an error
// with the path of the field.
func TestRunningPatchRejectsProtectedFields(t *testing.T) {
	tests := map[string]struct {
		note func(*patch.Patch)
		want string
	}{
		"spec":                               {func(p *patch.Patch) { p.Spec().In("config").Set("kind", "Other") }, "spec.config.kind"},
		"name":                               {func(p *patch.Patch) { p.Metadata().Set("name", "other") }, "metadata.name"},
		"generateName":                       {func(p *patch.Patch) { p.Metadata().Set("generateName", "x") }, "metadata"},
		"finalizer of the library":           {func(p *patch.Patch) { p.Metadata().Set("finalizers", nil) }, "metadata.finalizers"},
		"operation":                          {func(p *patch.Patch) { p.Annotations().Set(lsv1alpha1.OperationAnnotation, "abort") }, lsv1alpha1.OperationAnnotation},
		"phase":                              {func(p *patch.Patch) { p.Status().Set("phase", "Failed") }, "status.phase"},
		"job":                                {func(p *patch.Patch) { p.Status().Set("jobIDFinished", "9") }, "status.jobIDFinished"},
		"field of the library in a function": {func(p *patch.Patch) { p.Append(setDeployerName) }, "status.deployer"},
		"unknown field":                      {func(p *patch.Patch) { p.Status().Set("greeting", "hello") }, "status.greeting"},
		"provider status without a kind":     {func(p *patch.Patch) { p.Status().Set("providerStatus", map[string]any{"a": "b"}) }, "status.providerStatus"},
		"invalid label":                      {func(p *patch.Patch) { p.Labels().Set("a b", "c") }, "metadata.labels"},
		"invalid annotation":                 {func(p *patch.Patch) { p.Annotations().Set("a b", "c") }, "metadata.annotations"},
		"invalid type of a field":            {func(p *patch.Patch) { p.Status().Set("conditions", "none") }, "status.conditions"},
		"value that JSON cannot express":     {func(p *patch.Patch) { p.Status().Set("providerStatus", make(chan int)) }, "status.providerStatus"},
		"invalid finalizer":                  {func(p *patch.Patch) { p.Append(addFinalizer("a b")) }, "metadata.finalizers"},
		"error of a function":                {func(p *patch.Patch) { p.Append(func(map[string]any) error { return errBoom }) }, "boom"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(withJob("1")), withHooks())
			w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, newPatchingHook(func(p *patch.Patch) { addLabelAndCondition(p); test.note(p) }, nil, nil))
			before := w.getItem()
			w.runAttempt()
			w.expectCalls() // the deployer was not called
			di := w.getItem()
			if di.Status.LastError == nil || !strings.Contains(di.Status.LastError.Message, test.want) || strings.Contains(di.Status.LastError.Message, "\n") {
				t.Fatalf("last error %+v, want it to name %q", di.Status.LastError, test.want)
			}
			if len(di.Labels) > 0 || !slices.Equal(di.Finalizers, before.Finalizers) || di.Status.JobIDFinished == "9" || di.Status.Deployer.Name == "me" {
				t.Errorf("something of the patch was stored: %+v", di)
			}
		})
	}
	t.Run("an invalid patch of the deployer fails the run", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(func(p *patch.Patch) { p.Status().Set("phase", "Failed") }))
		w.runAttempt()
		if s := w.getItem().Status; s.Phase == phases.Succeeded || s.LastError == nil || s.LastError.Reason != "PatchRefused" || !strings.Contains(s.LastError.Message, "status.phase") {
			t.Errorf("status = %+v, want a phase other than Succeeded and a lastError with reason PatchRefused and a message that contains status.phase", s)
		}
	})
	t.Run("setting a stored value changes nothing", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(func(p *patch.Patch) { p.Status().Set("jobID", "1"); p.Spec().Set("type", string(testType)) }))
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Succeeded || s.LastError != nil {
			t.Errorf("status = %+v, want phase Succeeded and no lastError", s)
		}
	})
	t.Run("the conditions of the library are kept", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("pods", time.Minute), landscapertest.RunInOrder(
			newPatchingAction(func(p *patch.Patch) { p.Status().Set("conditions", nil) }), landscapertest.ReturnWaitFor("pods", time.Minute)))
		w.runAttempt()
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
		if contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionWaiting) == nil {
			t.Error("the condition is gone")
		}
	})
}

func setDeployerName(body map[string]any) error {
	return unstructured.SetNestedField(body, "me", "status", "deployer", "name")
}

// addFinalizer returns a function that adds a finalizer if the object does not have it.
func addFinalizer(name string) patch.Func {
	return func(body map[string]any) error {
		finalizers, _, err := unstructured.NestedStringSlice(body, "metadata", "finalizers")
		if err != nil || slices.Contains(finalizers, name) {
			return err
		}
		return unstructured.SetNestedStringSlice(body, append(finalizers, name), "metadata", "finalizers")
	}
}

func TestRunningPatchConflicts(t *testing.T) {
	t.Run("functions run again on the newer version, and no change of another client is lost", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(func(p *patch.Patch) { addLabelAndCondition(p); p.Append(addFinalizer("mine.example.com/x")) }))
		w.runBeforeOutcome(func() {
			w.updateItem(func(di *lsv1alpha1.DeployItem) {
				di.Labels, di.Finalizers = map[string]string{"a": "b"}, append(di.Finalizers, "theirs.example.com/y")
				di.Status.Conditions = contract.SetCondition(di.Status.Conditions, "Theirs", lsv1alpha1.ConditionTrue, "Theirs", "", t0)
			})
		})
		w.runAttempt()
		w.expectLabelAndCondition()
		di := w.getItem()
		if di.Labels["a"] != "b" || len(di.Finalizers) != 3 || di.Status.Phase != phases.Succeeded {
			t.Errorf("labels %v, finalizers %v, phase %s", di.Labels, di.Finalizers, di.Status.Phase)
		}
		w.expectRequests("patch status", "patch status", "get", "patch status", "patch")
	})
	t.Run("the status is not written again if only the write of the metadata conflicts", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		counted := func(body map[string]any) error {
			n, _, err := unstructured.NestedInt64(body, "status", "providerStatus", "n")
			if err != nil {
				return err
			}
			return unstructured.SetNestedMap(body, map[string]any{"apiVersion": "v1", "kind": "N", "n": n + 1}, "status", "providerStatus")
		}
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(func(p *patch.Patch) { addLabelAndCondition(p); p.Append(counted) }))
		met := false
		w.beforeRequest = func(request string, _ client.Object) error {
			if request == "patch" && !met {
				met = true
				w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} })
			}
			return nil
		}
		w.runAttempt()
		w.expectLabelAndCondition()
		if got := string(w.getItem().Status.ProviderStatus.Raw); !strings.Contains(got, `"n":1`) || w.getItem().Labels["a"] != "b" {
			t.Errorf("provider status %s", got)
		}
		w.expectRequests("patch status", "patch status", "patch", "get", "patch")
	})
	t.Run("a write whose response was lost is repeated once", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(addLabelAndCondition))
		n := 0
		w.afterRequest = func(string, client.Object) error {
			if n++; n == 2 {
				return errors.New("connection lost")
			}
			return nil
		}
		w.runAttempt()
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectLabelAndCondition()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("the patch of a run that has ended is dropped", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(addLabelAndCondition))
		w.runBeforeOutcome(func() {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.JobID = "1", "2" })
		})
		w.runAttempt()
		if di := w.getItem(); len(di.Labels) > 0 || di.Status.JobIDFinished != "1" {
			t.Errorf("labels %v, status %+v, want no labels and jobIDFinished 1", di.Labels, di.Status)
		}
	})
	t.Run("a status that the API server rejects fails the run", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, newPatchingAction(addLabelAndCondition))
		n := 0
		w.beforeRequest = func(request string, _ client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInvalid(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem").GroupKind(), key.Name, nil)
			}
			return nil
		}
		w.runAttempt()
		if di := w.getItem(); len(di.Labels) > 0 || di.Status.LastError == nil {
			t.Errorf("labels %v, status %+v, want no labels and a lastError", di.Labels, di.Status)
		}
	})
}

func TestRunningPatchLifetime(t *testing.T) {
	t.Run("Checkpoint writes the recorded changes, and later changes are written later", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			p := patch.FromContext(ctx)
			addLabelAndCondition(p)
			if err := deployerlib.Checkpoint(ctx); err != nil {
				return err
			}
			w.expectLabelAndCondition()
			if !p.IsEmpty() || contract.GetCondition(in.Item.Status.Conditions, "Noted") == nil || in.Item.Labels["team"] != "blue" {
				return fmt.Errorf("after the checkpoint: patch empty %t, item %+v", p.IsEmpty(), in.Item)
			}
			p.Labels().Set("later", "on")
			return nil
		})
		w.runAttempt()
		w.expectLabelAndCondition()
		if s := w.getItem(); s.Labels["later"] != "on" || s.Status.Phase != phases.Succeeded {
			t.Errorf("labels %v, status %+v, want label later and phase Succeeded", s.Labels, s.Status)
		}
		w.expectRequests("patch status", "patch status", "patch", "patch status", "patch")
	})
	t.Run("a hook sees the changes of the previous hook, and all changes are written together", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		seen := any(nil)
		w.hooks.SetHookAnswer("hook", extension.BeforeAnyReconcileHook, newPatchingHook(addLabelAndCondition, nil, nil))
		w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, newPatchingHook(func(p *patch.Patch) {
			seen, _ = p.Labels().Get("team")
			p.Labels().Set("team", "red")
		}, nil, nil))
		w.runAttempt()
		if seen != "blue" || w.getItem().Labels["team"] != "red" {
			t.Errorf("seen %v, stored %v", seen, w.getItem().Labels)
		}
		w.expectRequests("patch status", "patch status", "patch")
	})
	t.Run("the patch cannot be used after its reconcile", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		var late *patch.Patch
		w.hooks.SetHookAnswer("hook", extension.EndHook, newPatchingHook(func(p *patch.Patch) { late = p }, nil, nil))
		w.runAttempt()
		late.Labels().Set("too", "late")
		w.updateItem(func(di *lsv1alpha1.DeployItem) { withJob("2")(di) })
		w.hooks.SetHookAnswer("hook", extension.EndHook, landscapertest.ReturnResult(nil, nil))
		w.runAttempt()
		if got := w.getItem(); len(got.Labels) > 0 || got.Status.JobIDFinished != "2" {
			t.Errorf("labels %v", got.Labels)
		}
	})
	t.Run("the next reconcile does not use a cached item that is older than the patch [Kx12]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		count := func(body map[string]any) error {
			labels, _, err := unstructured.NestedStringMap(body, "metadata", "labels")
			if err != nil {
				return err
			}
			return unstructured.SetNestedStringMap(body, map[string]string{"passes": labels["passes"] + "I"}, "metadata", "labels")
		}
		w.hooks.SetHookAnswer("hook", extension.AfterResponsibilityCheckHook, newPatchingHook(func(p *patch.Patch) { p.Append(count) }, nil, nil))
		first := w.getItem()
		w.runAttempt()
		w.popRequests()
		w.transformCached = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return first }
		w.runAttempt()
		w.expectRequests()
		w.transformCached = nil
		w.runAttempt()
		w.expectRequests("patch")
		if got := w.getItem().Labels["passes"]; got != "II" {
			t.Errorf("passes %s, want one for each pass on a fresh item", got)
		}
	})
	t.Run("the patch is dropped if the removal of the last finalizer deletes the item", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion))
		w.fake.QueueAnswers(contract.ActionDelete, newPatchingAction(addLabelAndCondition))
		w.runAttempt()
		if w.getItem() != nil {
			t.Error("the item is still there")
		}
		w.expectRequests("patch status", "patch")
	})
	t.Run("the patch is written after the deadline of the run", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
			addLabelAndCondition(patch.FromContext(ctx))
			w.clock.Step(contract.DefaultTimeout)
			<-ctx.Done()
			return ctx.Err()
		})
		w.runAttempt()
		w.expectLabelAndCondition()
		if s := w.getItem().Status; s.Phase != phases.Failed || s.LastError.Reason != lsv1alpha1.ProgressingTimeoutReason {
			t.Errorf("status = %+v, want phase Failed and reason ProgressingTimeout", s)
		}
	})
}
