// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/patch"
)

func applyTo(t *testing.T, p *patch.Patch, body map[string]any) map[string]any {
	t.Helper()
	out, err := p.ApplyTo(body)
	if err != nil {
		t.Fatalf("Fold: %v", err)
	}
	return out
}

func TestView(t *testing.T) {
	t.Run("a View sets, gets, iterates and reverts values [K11, K15]", func(t *testing.T) {
		p := &patch.Patch{}
		p.Spec().Set("b", 1)
		p.Spec().Set("a", nil)
		p.Annotations().Set("x/y", "1")
		p.Spec().In("c", "d").Set("", []string{"z"})
		var keys []string
		for key := range p.Spec().All() {
			keys = append(keys, key)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if value, noted := p.Spec().Get("a"); value != nil || !noted {
			t.Errorf("Get(a) = %v, %t, want nil and true", value, noted)
		}
		if _, noted := p.Spec().Get("nope"); noted || p.Status().Len() != 0 || p.Body().Len() != 2 {
			t.Error("reading created a change")
		}
		value, _ := p.Body().Get("spec")
		want := map[string]any{"a": nil, "b": int64(1), "c": map[string]any{"d": map[string]any{"": []any{"z"}}}}
		if diff := cmp.Diff(any(want), value); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		p.Spec().In("c", "d").Forget("")
		p.Spec().Forget("a")
		p.Spec().Forget("b")
		p.Annotations().Forget("x/y")
		if !p.IsEmpty() {
			t.Errorf("changes remain after Forget was called for all fields: %v", applyTo(t, p, nil))
		}
	})
	t.Run("values are copied in and out", func(t *testing.T) {
		p, mine := &patch.Patch{}, map[string]any{"a": []any{"1"}}
		p.Spec().Set("m", mine)
		mine["a"].([]any)[0] = "2"
		got, _ := p.Spec().Get("m")
		got.(map[string]any)["a"] = "3"
		again, _ := p.Spec().Get("m")
		if diff := cmp.Diff(any(map[string]any{"a": []any{"1"}}), again); diff != "" {
			t.Errorf("value (-want +got):\n%s", diff)
		}
	})
	t.Run("changes accumulate from several goroutines [K12]", func(t *testing.T) {
		p, group := &patch.Patch{}, sync.WaitGroup{}
		for key := range strings.SplitSeq("abcdefgh", "") {
			group.Go(func() {
				p.Labels().Set(key, "1")
				p.Append(setLabel(key+key, "1"))
			})
		}
		group.Wait()
		if p.Labels().Len() != 8 || p.NumFuncs() != 8 {
			t.Errorf("%d labels and %d functions, want 8 of each", p.Labels().Len(), p.NumFuncs())
		}
	})
}

func TestApplyTo(t *testing.T) {
	t.Run("objects merge, nil deletes, lists are replaced [K16, K17, K18]", func(t *testing.T) {
		body := map[string]any{"spec": map[string]any{"a": map[string]any{"x": 1, "y": 2}, "l": []any{1, 2}, "n": nil}}
		p := &patch.Patch{}
		p.Spec().Set("a", map[string]any{"x": nil, "z": 3})
		p.Spec().Set("l", []int{3})
		want := map[string]any{"spec": map[string]any{"a": map[string]any{"y": int64(2), "z": int64(3)}, "l": []any{int64(3)}, "n": nil}}
		if diff := cmp.Diff(want, applyTo(t, p, body)); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	t.Run("functions run after the dictionary, in their order [K21, Kx7]", func(t *testing.T) {
		p, trace := &patch.Patch{}, ""
		note := func(name string) patch.Func {
			return func(body map[string]any) error { trace += name + body["dict"].(string) + " "; return nil }
		}
		p.Append(note("b"), nil, note("d"))
		p.Insert(0, note("a"))
		p.Insert(2, note("c"))
		p.Insert(98, note("e"))
		p.Body().Set("dict", "!")
		applyTo(t, p, map[string]any{})
		if want := "a! b! c! d! e! "; trace != want {
			t.Errorf("order %q, want %q", trace, want)
		}
	})
	t.Run("functions get deep copies and change them in place [K22, K23, K24]", func(t *testing.T) {
		body := map[string]any{"spec": map[string]any{"l": []any{"a"}}}
		p := &patch.Patch{}
		p.Append(func(body map[string]any) error {
			spec := body["spec"].(map[string]any)
			spec["l"] = append(spec["l"].([]any), "b")
			spec["l"].([]any)[0] = "A"
			return nil
		})
		got := applyTo(t, p, body)
		if diff := cmp.Diff(map[string]any{"spec": map[string]any{"l": []any{"A", "b"}}}, got); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]any{"spec": map[string]any{"l": []any{"a"}}}, body); diff != "" {
			t.Errorf("the original was changed:\n%s", diff)
		}
	})
	t.Run("Clear removes values and functions, and a patch with only functions is not empty [Kx6]", func(t *testing.T) {
		p := &patch.Patch{}
		p.Append(setLabel("a", "1"))
		if p.IsEmpty() {
			t.Error("a patch with a function is empty")
		}
		p.Spec().Set("a", func() {})
		p.Labels().Set("a", "1")
		p.Clear()
		if !p.IsEmpty() || p.NumFuncs() != 0 || p.Body().Len() != 0 {
			t.Error("the patch is not empty after Clear()")
		}
		applyTo(t, p, nil)
	})
}

func TestTyped(t *testing.T) {
	type port struct {
		Name string `json:"name,omitempty"`
		Port int64  `json:"port"`
	}
	type known struct {
		Spec struct {
			Ports []port            `json:"ports,omitempty"`
			Text  string            `json:"text,omitempty"`
			Map   map[string]string `json:"map,omitempty"`
		} `json:"spec"`
	}
	body := func() map[string]any {
		item := func(name string, n int64) any { return map[string]any{"name": name, "port": n, "unknown": name} }
		return map[string]any{"kind": "X", "spec": map[string]any{
			"ports": []any{item("a", 1), item("b", 2), item("c", 3)}, "text": "t", "new": map[string]any{"x": nil},
		}}
	}
	p := &patch.Patch{}
	p.Append(patch.Typed(func(k *known) error {
		k.Spec.Ports = append(k.Spec.Ports[1:], port{Name: "d", Port: 4})
		k.Spec.Text = ""
		k.Spec.Map = map[string]string{"k": "v"}
		return nil
	}), patch.Typed(func(k *known) error { k.Spec.Ports[1].Port = 33; return nil }))
	want := map[string]any{"kind": "X", "spec": map[string]any{
		"ports": []any{
			map[string]any{"name": "b", "port": int64(2), "unknown": "b"},
			map[string]any{"name": "c", "port": int64(33), "unknown": "c"},
			map[string]any{"name": "d", "port": int64(4)},
		},
		"new": map[string]any{"x": nil}, "map": map[string]any{"k": "v"},
	}}
	if diff := cmp.Diff(want, applyTo(t, p, body())); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}

	secret := map[string]any{"data": map[string]any{"k": "TOP SECRET"}}
	p.Clear()
	p.Append(patch.Typed(func(*corev1.Secret) error { return nil }))
	if _, err := p.ApplyTo(secret); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Fold() = %v, want an error without the value", err)
	}
}

func TestPreview(t *testing.T) {
	di := newItem()
	before, p := di.DeepCopy(), &patch.Patch{}
	p.Append(setLabel("a", "1"))
	p.Status().Set("phase", "Init")
	got, err := p.ApplyToCopy(di)
	if err != nil {
		t.Fatalf("Preview: %v", err)
	}
	want := di.DeepCopy()
	want.Labels, want.Status.Phase = map[string]string{"a": "1"}, "Init"
	if diff := cmp.Diff(want, got.(*lsv1alpha1.DeployItem)); diff != "" {
		t.Errorf("preview (-want +got):\n%s", diff)
	}
	assertUntouched(t, before, di)
}

func TestPatchIsNotEmpty(t *testing.T) {
	t.Run("a patch with a value that JSON cannot express is not empty", func(t *testing.T) {
		p := &patch.Patch{}
		p.Spec().Set("a", func() {})
		if p.IsEmpty() {
			t.Error("the error would be lost, because empty patches are not sent")
		}
	})
	t.Run("a patch that sets an empty object is not empty [Kx10]", func(t *testing.T) {
		p := &patch.Patch{}
		p.Spec().Set("a", map[string]any{})
		want := map[string]any{"spec": map[string]any{"a": map[string]any{}}}
		if diff := cmp.Diff(want, applyTo(t, p, map[string]any{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestPatchRejectsInvalidValues(t *testing.T) {
	t.Run("a patch rejects numbers that JSON cannot express", func(t *testing.T) {
		for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			p := &patch.Patch{}
			p.Spec().Set("a", []any{value})
			if _, err := p.ApplyTo(map[string]any{}); err == nil || !strings.HasPrefix(err.Error(), "spec.a[0]: ") {
				t.Errorf("%f: got %v, want the path", value, err)
			}
		}
	})
	t.Run("a patch rejects an object of another kind", func(t *testing.T) {
		c, _ := newClient(t)
		for _, key := range []string{"apiVersion", "kind"} {
			p, field := &patch.Patch{}, &patch.FieldError{}
			p.Body().Set(key, "other/v1")
			if _, err := p.Apply(t.Context(), c, newObject(t, `{}`)); !errors.As(err, &field) || field.Path != key {
				t.Errorf("%s: Apply() = %v, want a FieldError", key, err)
			}
		}
	})
}
