// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/patch"
)

var strangeKeys = []string{"a", "b", "a/b", "~", "~0", "~1/", "a.b", "", "ü€", `"\`, "0", "-", " "}

// randomValue returns a random JSON value, which may contain explicit nulls.
func randomValue(r *rand.Rand, depth int) any {
	kind := r.IntN(8)
	if depth == 0 {
		kind = r.IntN(5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.IntN(3))
	case 3:
		return float64(r.IntN(3)) + 0.5
	case 4:
		return strangeKeys[r.IntN(len(strangeKeys))]
	case 5:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	return randomObject(r, depth-1)
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(5) {
		out[strangeKeys[r.IntN(len(strangeKeys))]] = randomValue(r, depth)
	}
	return out
}

// changeValue returns a copy of the given value in which some parts differ.
func changeValue(r *rand.Rand, value any, depth int) any {
	if r.IntN(4) == 0 {
		return randomValue(r, depth)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if r.IntN(5) == 0 {
				delete(v, key)
			} else {
				v[key] = changeValue(r, member, depth-1)
			}
		}
		v[strangeKeys[r.IntN(len(strangeKeys))]] = randomValue(r, depth)
		return v
	case []any:
		if len(v) > 0 {
			at := r.IntN(len(v))
			v = append(v[:at:at], v[at+1:]...)
		}
		return append(v, randomValue(r, max(depth-1, 0)))
	}
	return value
}

// FuzzApply checks that the object that Apply stores is equal to the object that ApplyTo computes, and that a second
// Apply sends nothing.
func FuzzApply(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, seed%3 != 0, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, functions, dictionary bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": "x", "namespace": "default"},
			"spec": randomObject(r, 3), "status": randomObject(r, 3),
		}}
		c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(obj).Build()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatalf("get: %v", err)
		}
		p := &patch.Patch{}
		if dictionary {
			for _, part := range []string{"spec", "status"} {
				for key, value := range randomObject(r, 2) {
					p.Body().In(part).Set(key, value)
				}
			}
		}
		if functions {
			wanted := map[string]any{}
			for _, part := range []string{"spec", "status"} {
				copied, _ := obj.DeepCopy().Object[part].(map[string]any)
				wanted[part] = changeValue(r, copied, 3)
			}
			p.Append(func(body map[string]any) error {
				body["spec"], body["status"] = wanted["spec"], wanted["status"]
				return nil
			})
		}
		want := applyTo(t, p, obj.Object)
		result := apply(t, p, c, obj, patch.WithStatusSubresource(false))
		if len(result.Calls) > 1 {
			t.Errorf("%d calls, want one at most", len(result.Calls))
		}
		for _, part := range []string{"spec", "status"} {
			if diff := cmp.Diff(normalizeNumbers(t, want[part]), normalizeNumbers(t, obj.Object[part])); diff != "" {
				t.Errorf("%s (-folded +stored):\n%s", part, diff)
			}
		}
		if again := apply(t, p, c, obj, patch.WithStatusSubresource(false)); len(again.Calls) > 0 {
			t.Errorf("the second time %d calls were made", len(again.Calls))
		}
	})
}

// normalizeNumbers encodes and decodes a value, so that equal numbers such as 1 and 1.0 have the same type.
func normalizeNumbers(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return out
}

// TestApplyListsOfTypedObjects checks that changes of a list through a Go type keep the fields that the type does not
// declare, and do not change other items.
func TestApplyListsOfTypedObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
		for i := range r.IntN(5) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint(i)})
		}
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod).Build()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		var want []corev1.Container
		for range r.IntN(5) {
			want = append(want, corev1.Container{Name: fmt.Sprint(r.IntN(6)), Image: "i"[:r.IntN(2)]})
		}
		p := &patch.Patch{}
		p.Append(patch.Typed(func(pod *corev1.Pod) error { pod.Spec.Containers = want; return nil }))
		apply(t, p, c, pod)
		if diff := cmp.Diff(want, pod.Spec.Containers); diff != "" {
			t.Fatalf("containers (-want +got):\n%s", diff)
		}
	}
}
