// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

var errBoom = errors.New("boom")

// setLabel returns a Func that sets the given label.
func setLabel(key, value string) patch.Func {
	return func(body map[string]any) error {
		metadata, _ := body["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
			metadata["labels"] = labels
		}
		labels[key] = value
		return nil
	}
}

func apply(t *testing.T, p *patch.Patch, c client.Client, obj client.Object, opts ...patch.Option) patch.Result {
	t.Helper()
	result, err := p.Apply(t.Context(), c, obj, opts...)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return result
}

func TestApplySendsNothing(t *testing.T) {
	cases := map[string]func(*patch.Patch){
		"an empty patch [K8]":            func(*patch.Patch) {},
		"a function without effect [K8]": func(p *patch.Patch) { p.Append(setLabel("old", "1")) },
		"setting a stored value [K8]":    func(p *patch.Patch) { p.Labels().Set("old", "1") },
		"deleting an absent value [K19]": func(p *patch.Patch) { p.Annotations().Set("nope", nil); p.Status().Set("providerStatus", nil) },
		"a change that a function reverts [K8]": func(p *patch.Patch) {
			p.Labels().Set("old", "2")
			p.Append(setLabel("old", "1"))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"old": "1"} })
			before, p := di.DeepCopy(), &patch.Patch{}
			change(p)
			result := apply(t, p, c, di)
			if len(result.Calls)+len(count.bodies)+result.Attempts != 0 || result.Reads != min(p.NumFuncs(), 1) {
				t.Errorf("calls %v, sent %v, %d reads, want none, and one read with functions", result.Calls, count.bodies, result.Reads)
			}
			assertUntouched(t, before, di)
		})
	}
}

func TestApplyMerge(t *testing.T) {
	c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) {
		di.Labels = map[string]string{"gone": "1", "keep": "1"}
		di.Status.ObservedGeneration = 1
	})
	p := &patch.Patch{}
	p.Labels().Set("gone", nil)
	p.Labels().Set("new/x~y", "1")
	p.Status().Set("phase", "Init")
	t.Run("changes are sent as merge patches, the main resource first [K13, K15, Kx1, Kx9]", func(t *testing.T) {
		result := apply(t, p, c, di, patch.WithStatusSubresource(true))
		want := []string{`{"metadata":{"labels":{"gone":null,"new/x~y":"1"}}}`, `{"metadata":{"resourceVersion":"8"},"status":{"phase":"Init"}}`}
		if diff := cmp.Diff(want, count.bodies); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		for i, call := range result.Calls {
			if call.Type != types.MergePatchType || call.Bytes != len(want[i]) || call.Err != nil {
				t.Errorf("call %d: %+v", i, call)
			}
		}
		now := &lsv1alpha1.DeployItem{}
		read(t, c, now)
		if diff := cmp.Diff(now, di); diff != "" {
			t.Errorf("the object is not the stored one (-stored +obj):\n%s", diff)
		}
		if result.Body["status"].(map[string]any)["phase"] != "Init" || result.Attempts != 1 || result.Left != nil {
			t.Errorf("result = %+v, want phase Init, one attempt and no remaining patch", result)
		}
	})
}

func TestApplyFunctions(t *testing.T) {
	c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = 1 })
	p := &patch.Patch{}
	p.Labels().Set("a/b", "1")
	p.Append(patch.Typed(func(di *lsv1alpha1.DeployItem) error {
		di.Status.Phase = "Init"
		di.Labels["seen"] = di.Labels["a/b"]
		return nil
	}))
	t.Run("functions are sent as one JSON patch per endpoint that contains the resourceVersion [K2, K26, K27, Kx2, Kx7, Kx15]", func(t *testing.T) {
		apply(t, p, c, di, patch.WithStatusSubresource(true))
		want := []string{
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/metadata/labels","value":{"a/b":"1","seen":"1"}}]`,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"8"},{"op":"add","path":"/status/phase","value":"Init"}]`,
		}
		if diff := cmp.Diff(want, count.bodies); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if di.Status.Phase != "Init" || di.Labels["seen"] != "1" {
			t.Errorf("object %+v", di)
		}
	})
}

func TestApplyConflicts(t *testing.T) {
	t.Run("functions run again on the newer body [K25, K29, K30, K34, Kx15]", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		stale := asUnstructured(t, di)
		foreign := &patch.Patch{}
		foreign.Labels().Set("foreign", "1")
		apply(t, foreign, c, di)
		p, runs := &patch.Patch{}, 0
		p.Append(func(body map[string]any) error { runs++; return setLabel("mine", "1")(body) })
		result := apply(t, p, c, stale)
		if result.Attempts != 2 || result.Reads != 1 || runs != 2 || count.main.Load() != 3 {
			t.Errorf("attempts %d, reads %d, runs %d", result.Attempts, result.Reads, runs)
		}
		if diff := cmp.Diff(map[string]string{"foreign": "1", "mine": "1"}, stale.GetLabels()); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if !apierrors.IsConflict(result.Calls[0].Err) {
			t.Errorf("first call: %v, want a conflict", result.Calls[0].Err)
		}
	})
	t.Run("the number of attempts is limited", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		count.mainErr = apierrors.NewConflict(itemResource, "web", nil)
		p := &patch.Patch{}
		p.Append(setLabel("a", "1"))
		result, err := p.Apply(t.Context(), c, asUnstructured(t, di), patch.WithMaxAttempts(3))
		if !apierrors.IsConflict(err) || result.Reads != 2 {
			t.Errorf("Apply() = %v after %d reads, want a conflict after 2", err, result.Reads)
		}
	})
	t.Run("a locked patch is not sent again after a conflict", func(t *testing.T) {
		c, _, di := newStoredItem(t)
		di.ResourceVersion = "6"
		p := &patch.Patch{}
		p.Labels().Set("a", "1")
		result, err := p.Apply(t.Context(), c, di, patch.WithOptimisticLock())
		if !apierrors.IsConflict(err) || result.Attempts != 1 || result.Reads != 0 {
			t.Errorf("Apply() = %v after %d attempts, want a conflict after 1", err, result.Attempts)
		}
	})
	t.Run("the retries stop when the context ends", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		count.mainErr = apierrors.NewConflict(itemResource, "web", nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &patch.Patch{}
		p.Append(func(body map[string]any) error { cancel(errBoom); return setLabel("a", "1")(body) })
		if _, err := p.Apply(ctx, c, di); !errors.Is(err, errBoom) {
			t.Errorf("Apply() = %v, want the cause", err)
		}
	})
}

// TestApplyRetriesOnlyTheRest tests a conflict in the write of the status, after the main resource was written.
func TestApplyRetriesOnlyTheRest(t *testing.T) {
	increment := func(body map[string]any) error {
		metadata, status := body["metadata"].(map[string]any), body["status"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		text, _ := annotations["n"].(string)
		annotations["n"] = text + "+"
		generation, _ := status["observedGeneration"].(int64)
		status["observedGeneration"] = generation + 1
		return nil
	}
	c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = 1 })
	count.statusErr = apierrors.NewConflict(itemResource, "web", nil)
	p := &patch.Patch{}
	p.Append(increment)
	result, err := p.Apply(t.Context(), c, di, patch.WithStatusSubresource(true), patch.WithMaxAttempts(1))
	if !apierrors.IsConflict(err) || result.Left == nil {
		t.Fatalf("Apply() = %+v, %v, want a conflict and remaining changes", result, err)
	}
	count.statusErr = nil
	t.Run("changes of the first write are not sent again [Kx3]", func(t *testing.T) {
		apply(t, result.Left, c, di, patch.WithStatusSubresource(true))
		if di.Annotations["n"] != "+" || di.Status.ObservedGeneration != 2 || count.main.Load() != 1 {
			t.Errorf("annotation %q, generation %d, %d main calls; want each once", di.Annotations["n"], di.Status.ObservedGeneration, count.main.Load())
		}
	})
}

func TestApplyErrors(t *testing.T) {
	t.Run("the patch of an object that is gone is dropped [Kx4]", func(t *testing.T) {
		c, _ := newClient(t)
		p := &patch.Patch{}
		p.Labels().Set("a", "1")
		p.Append(setLabel("b", "1"))
		if result := apply(t, p, c, newItem()); !result.Gone || result.Body != nil || result.Left != nil {
			t.Errorf("result %+v, want gone", result)
		}
		p.Clear()
		p.Status().Set("phase", "Init")
		if result := apply(t, p, c, newItem()); !result.Gone {
			t.Errorf("result %+v, want gone", result)
		}
	})
	t.Run("other errors are returned [Kx5]", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		count.mainErr = apierrors.NewForbidden(itemResource, "web", nil)
		p := &patch.Patch{}
		p.Labels().Set("a", "1")
		if result, err := p.Apply(t.Context(), c, di); !apierrors.IsForbidden(err) || result.Left.IsEmpty() {
			t.Errorf("Apply() = %v, want forbidden", err)
		}
	})
	t.Run("an error reports an object that is too large", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		count.mainErr = apierrors.NewRequestEntityTooLargeError("limit is 3145728")
		p, tooLarge := &patch.Patch{}, &patch.SizeError{}
		p.Labels().Set("a", "1")
		if _, err := p.Apply(t.Context(), c, di); !errors.As(err, &tooLarge) || !patch.IsTooLarge(err) {
			t.Errorf("Apply() = %v, want a SizeError", err)
		}
	})
	t.Run("functions and locks need a reference body [Kx8]", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		di.ResourceVersion = ""
		p := &patch.Patch{}
		p.Labels().Set("a", "1")
		if _, err := p.Apply(t.Context(), c, di, patch.WithOptimisticLock()); err == nil {
			t.Error("Apply() with a lock gives no error")
		}
		if _, err := p.Apply(t.Context(), c, nil); err == nil {
			t.Error("Apply() to nil gives no error")
		}
		apply(t, p, c, di)
		p.Append(setLabel("b", "1"))
		di.ResourceVersion = ""
		if _, err := p.Apply(t.Context(), c, di); err == nil || count.main.Load() != 1 {
			t.Errorf("Apply() of functions: %v after %d calls, want an error and one call", err, count.main.Load())
		}
	})
	t.Run("the error of a function is returned and nothing is sent", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		p := &patch.Patch{}
		p.Append(func(map[string]any) error { return errBoom })
		if _, err := p.Apply(t.Context(), c, di); !errors.Is(err, errBoom) || len(count.bodies) > 0 {
			t.Errorf("Apply() = %v", err)
		}
	})
	t.Run("the error for a value that JSON cannot express names its path and hides the value", func(t *testing.T) {
		c, _, di := newStoredItem(t)
		p := &patch.Patch{}
		p.Spec().In("a").Set("b/c", func() {})
		if _, err := p.Apply(t.Context(), c, di); err == nil || !strings.Contains(err.Error(), `spec.a["b/c"]: `) {
			t.Errorf("Apply() = %v, want the path", err)
		}
		p.Spec().In("a").Set("b/c", "good")
		if _, err := p.ApplyTo(map[string]any{}); err != nil {
			t.Errorf("Fold() after the repair: %v", err)
		}
		p.Append(func(body map[string]any) error { body["x"] = []any{func() {}}; return nil })
		if _, err := p.Apply(t.Context(), c, di); err == nil || !strings.Contains(err.Error(), "x[0]: ") {
			t.Errorf("Apply() = %v, want the path", err)
		}
	})
	t.Run("a patch cannot change the identity of the object", func(t *testing.T) {
		c, _, di := newStoredItem(t)
		for _, key := range []string{"name", "namespace", "uid", "resourceVersion"} {
			p, field := &patch.Patch{}, &patch.FieldError{}
			p.Metadata().Set(key, "other")
			if _, err := p.Apply(t.Context(), c, di); !errors.As(err, &field) || field.Path != "metadata."+key {
				t.Errorf("%s: Apply() = %v, want a FieldError", key, err)
			}
		}
	})
}

func TestApplyLastFinalizer(t *testing.T) {
	t.Run("the object may be gone after the last finalizer is removed [Kx13]", func(t *testing.T) {
		c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"a/b"} })
		if err := c.Delete(t.Context(), di.DeepCopy()); err != nil {
			t.Fatalf("delete: %v", err)
		}
		read(t, c, di)
		p := &patch.Patch{}
		p.Metadata().Set("finalizers", nil)
		p.Status().Set("phase", "Deleting")
		if result := apply(t, p, c, di, patch.WithStatusSubresource(true)); !result.Gone || len(result.Calls) != 1 {
			t.Errorf("result %+v, want gone after one call", result)
		}
		if count.status.Load() != 0 {
			t.Error("the status of an object that is gone was written")
		}
	})
}

// TestApplyIgnoresLaterChanges checks that Apply does not send changes that are added to the patch during the call.
func TestApplyIgnoresLaterChanges(t *testing.T) {
	c, _, di := newStoredItem(t)
	stale := asUnstructured(t, di)
	foreign := &patch.Patch{}
	foreign.Labels().Set("foreign", "1")
	apply(t, foreign, c, di)
	p := &patch.Patch{}
	p.Labels().Set("early", "1")
	p.Append(func(body map[string]any) error { p.Labels().Set("late", "1"); return setLabel("mine", "1")(body) })
	if result := apply(t, p, c, stale); result.Attempts != 2 {
		t.Errorf("got %d attempts, want two, of which the first one ends with a conflict", result.Attempts)
	}
	if diff := cmp.Diff(map[string]string{"foreign": "1", "early": "1", "mine": "1"}, stale.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
