// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/patch"
)

func requireFieldError(t *testing.T, err error, path string) {
	t.Helper()
	if field, ok := errors.AsType[*patch.FieldError](err); !ok || field.Path != path {
		t.Errorf("error %v, want a FieldError at %s", err, path)
	}
}

// newNumberedItems returns a list of objects with the names item-<from> to item-<to-1>.
func newNumberedItems(from, to int) []any {
	out := []any{}
	for i := from; i < to; i++ {
		out = append(out, map[string]any{"name": fmt.Sprint("item-", i), "text": strings.Repeat("x", 80)})
	}
	return out
}

// applyAndGetRequest applies a patch whose only function changes the given spec. It returns the operations in the only
// request and the size of the request.
func applyAndGetRequest(t *testing.T, spec map[string]any, change func(spec map[string]any)) (steps []map[string]any, size int) {
	t.Helper()
	s, p := newServer(t, `{}`), &patch.Patch{}
	s.body["spec"] = spec
	p.Append(func(body map[string]any) error { change(body["spec"].(map[string]any)); return nil })
	obj := s.raw()
	want := applyTo(t, p, obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent())
	result := apply(t, p, s, obj)
	if len(result.Calls) != 1 {
		t.Fatalf("%d calls, want one", len(result.Calls))
	}
	got, _ := json.Marshal(s.body["spec"])
	if wanted, _ := json.Marshal(want["spec"]); string(got) != string(wanted) {
		t.Error("the stored object is not equal to the result of Fold")
	}
	_, data, _ := strings.Cut(s.requests[0], "json-patch+json ")
	if err := json.Unmarshal([]byte(data), &steps); err != nil {
		t.Fatal(err)
	}
	return steps, len(data)
}

func TestOperationsLimitTheirSize(t *testing.T) {
	t.Run("one changed item of a thousand costs 300 bytes at most [F16]", func(t *testing.T) {
		_, size := applyAndGetRequest(t, map[string]any{"items": newNumberedItems(0, 1000)}, func(spec map[string]any) {
			spec["items"].([]any)[500].(map[string]any)["text"] = "changed"
		})
		if size > 300 {
			t.Errorf("%d bytes", size)
		}
	})
	t.Run("appending to a list and dropping the oldest item costs less than two items [F16]", func(t *testing.T) {
		_, size := applyAndGetRequest(t, map[string]any{"items": newNumberedItems(0, 2000)}, func(spec map[string]any) {
			spec["items"] = append(spec["items"].([]any)[1:], newNumberedItems(2000, 2001)...)
		})
		if size > 400 {
			t.Errorf("%d bytes", size)
		}
	})
	t.Run("a list whose changes are larger than itself is replaced as a whole [F16]", func(t *testing.T) {
		steps, size := applyAndGetRequest(t, map[string]any{"items": newNumberedItems(0, 3000)}, func(spec map[string]any) {
			spec["items"] = newNumberedItems(3000, 6000)
		})
		whole, _ := json.Marshal(newNumberedItems(3000, 6000))
		if len(steps) != 2 || size > len(whole)+200 {
			t.Errorf("%d steps, %d bytes for a list of %d", len(steps), size, len(whole))
		}
	})
	t.Run("a short list whose items all change is replaced as a whole [F16]", func(t *testing.T) {
		steps, size := applyAndGetRequest(t, map[string]any{"items": newNumberedItems(0, 100)}, func(spec map[string]any) {
			for i, item := range spec["items"].([]any) {
				item.(map[string]any)["name"] = fmt.Sprint("other-", i)
				item.(map[string]any)["text"] = strings.Repeat("y", 80)
			}
		})
		if whole, _ := json.Marshal(newNumberedItems(0, 100)); len(steps) != 2 || size > len(whole)+400 {
			t.Errorf("%d steps, %d bytes for a list of %d", len(steps), size, len(whole))
		}
	})
	t.Run("only moved items are sent [F16]", func(t *testing.T) {
		_, size := applyAndGetRequest(t, map[string]any{"items": newNumberedItems(0, 1000)}, func(spec map[string]any) {
			list := spec["items"].([]any)
			spec["items"] = append(append([]any{list[700]}, list[:700]...), list[701:]...)
		})
		if size > 400 {
			t.Errorf("%d bytes", size)
		}
	})
	t.Run("the limit of the API server on the number of steps is never reached [F16]", func(t *testing.T) {
		for name, lists := range map[string]int{"one object": 1, "many objects": 300} {
			spec := map[string]any{}
			for i := range lists {
				members := map[string]any{}
				for j := range 48000 / lists {
					members[fmt.Sprint("key-", j)] = strings.Repeat("x", 20)
				}
				spec[fmt.Sprint("part-", i)] = members
			}
			steps, _ := applyAndGetRequest(t, spec, func(spec map[string]any) {
				for _, members := range spec {
					for key := range members.(map[string]any) {
						if strings.HasSuffix(key, "3") || strings.HasSuffix(key, "7") || strings.HasSuffix(key, "9") {
							members.(map[string]any)[key] = "y"
						}
					}
				}
			})
			if len(steps) >= 10000 {
				t.Errorf("%s: %d steps", name, len(steps))
			}
		}
	})
}

func TestOperationsLimitTheirNumber(t *testing.T) {
	t.Run("the number of operations is limited if changes are spread over the whole object [F16]", func(t *testing.T) {
		s, p := newServer(t, `{}`), &patch.Patch{}
		for i := range 40 {
			members := getOrCreateObject(s.body, fmt.Sprint("part-", i))
			for j := range 1000 {
				members[fmt.Sprint("key-", j)] = strings.Repeat("x", 20)
			}
		}
		p.Append(func(body map[string]any) error {
			for i := range 40 {
				for j := range 300 {
					getOrCreateObject(body, fmt.Sprint("part-", i))[fmt.Sprint("key-", j)] = "y"
				}
			}
			return nil
		})
		apply(t, p, s, s.raw())
		if n := strings.Count(s.requests[0], `"op":`); n >= 10000 || getOrCreateObject(s.body, "part-39")["key-299"] != "y" {
			t.Errorf("%d steps", n)
		}
	})
}

func TestInvalidValueCanBeReplaced(t *testing.T) {
	bad := func() {}
	for name, repair := range map[string]func(*patch.Patch){
		"its parent is reverted":   func(p *patch.Patch) { p.Spec().Forget("a") },
		"all changes are reverted": func(p *patch.Patch) { p.Body().Forget("spec") },
		"its parent is set":        func(p *patch.Patch) { p.Spec().Set("a", map[string]any{"good": 1}) },
		"its parent is deleted":    func(p *patch.Patch) { p.Body().Set("spec", nil) },
		"the value is set again":   func(p *patch.Patch) { p.Spec().In("a", "b").Set("c", "good") },
		"a value below is set":     func(p *patch.Patch) { p.Spec().In("a", "b", "c").Set("d", "good") },
	} {
		t.Run("the error of an invalid value is removed when "+name+" [F18]", func(t *testing.T) {
			for _, note := range []func(*patch.Patch){
				func(p *patch.Patch) { p.Spec().In("a", "b").Set("c", bad) },
				func(p *patch.Patch) { p.Spec().Set("a", map[string]any{"b": map[string]any{"c": bad}}) },
			} {
				p := &patch.Patch{}
				note(p)
				_, err := p.ApplyTo(map[string]any{})
				requireFieldError(t, err, "spec.a.b.c")
				repair(p)
				applyTo(t, p, map[string]any{})
			}
		})
	}
	t.Run("other changes than an invalid value are kept [F18]", func(t *testing.T) {
		p := &patch.Patch{}
		p.Spec().Set("a", map[string]any{"bad": bad, "good": "1"})
		p.Spec().In("a").Set("bad", "2")
		spec := applyTo(t, p, map[string]any{})["spec"].(map[string]any)
		if got := spec["a"].(map[string]any); got["good"] != "1" || got["bad"] != "2" {
			t.Errorf("folded %v", got)
		}
	})
	t.Run("the value before an invalid value is not applied [F18]", func(t *testing.T) {
		p := &patch.Patch{}
		p.Spec().Set("a", "old")
		p.Spec().Set("a", bad)
		if _, noted := p.Spec().Get("a"); noted || p.IsEmpty() {
			t.Error("the old value is still recorded, or no value is recorded")
		}
		p.Spec().Forget("a")
		if !p.IsEmpty() {
			t.Error("something is left")
		}
	})
}

// newSecret returns a Secret and a client whose responses omit write-only fields, like the responses of the API server.
func newSecret(t *testing.T) (client.Client, *corev1.Secret) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, obj, p, opts...); err != nil {
				return err
			}
			body := obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
			delete(body, "stringData")
			delete(body, "colour")
			return nil
		},
	}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	return c, secret
}

func TestWarnings(t *testing.T) {
	t.Run("a write-only field causes no warning [F19]", func(t *testing.T) {
		c, secret := newSecret(t)
		p := &patch.Patch{}
		p.Body().In("stringData").Set("password", "x")
		if result := apply(t, p, c, secret, patch.WithStatusSubresource(false)); len(result.Warnings) > 0 {
			t.Errorf("warnings %v", result.Warnings)
		}
	})
	t.Run("warnings are logged without the value [F21]", func(t *testing.T) {
		logged := ""
		logger := funcr.New(func(_, args string) { logged += args + "\n" }, funcr.Options{})
		s, p := newServer(t, `{"spec":{}}`), &patch.Patch{}
		p.Spec().Set("colour", "TOP SECRET")
		result, err := p.Apply(log.IntoContext(t.Context(), logger), &dropping{s}, s.raw(), patch.WithStatusSubresource(true))
		if err != nil || len(result.Warnings) != 1 || !strings.HasPrefix(result.Warnings[0], "spec.colour was not stored") {
			t.Fatalf("Apply() = %+v, %v, want a warning", result, err)
		}
		if !strings.Contains(logged, "spec.colour was not stored") || !strings.Contains(logged, "default/web") && !strings.Contains(logged, `"web"`) || strings.Contains(logged, "SECRET") {
			t.Errorf("logged %s", logged)
		}
	})
}

// dropping is a server that does not store spec.colour.
type dropping struct{ *server }

func (d *dropping) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	err := d.server.Patch(ctx, obj, p, opts...)
	delete(obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["spec"].(map[string]any), "colour")
	return err
}
