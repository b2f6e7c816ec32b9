// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

const halfKnown = `{"metadata":{"labels":{"old":"1"}},"spec":{"enabled":false,"text":"","secret":"of a newer version","sub":{"shape":"round"},
	"items":[{"name":"a","image":"1","newer":"A"},{"name":"b","newer":"B"}]},"status":{"phase":"new"}}`

func getOrCreateObject(body map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, _ := body[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			body[key] = next
		}
		body = next
	}
	return body
}

func defaultTo(key string, value any) patch.Func {
	return func(body map[string]any) error {
		if spec := getOrCreateObject(body, "spec"); spec[key] == nil {
			spec[key] = value
		}
		return nil
	}
}

// patches contains patches whose result must be the same for a typed and an unstructured object.
var patches = map[string]func(*patch.Patch){
	"a default where an explicit false is stored": func(p *patch.Patch) { p.Append(defaultTo("enabled", true)) },
	"a default where an empty text is stored":     func(p *patch.Patch) { p.Append(defaultTo("text", "hello")) },
	"a default where nothing is stored":           func(p *patch.Patch) { p.Append(defaultTo("replicas", int64(3))) },
	"a field that the type does not declare":      func(p *patch.Patch) { p.Append(defaultTo("secret", "mine")) },
	"the removal of an undeclared field by a function": func(p *patch.Patch) {
		p.Append(func(body map[string]any) error { delete(getOrCreateObject(body, "spec"), "secret"); return nil })
	},
	"the removal of an undeclared field by a merge change":   func(p *patch.Patch) { p.Spec().Set("secret", nil) },
	"the removal of an undeclared field with another change": func(p *patch.Patch) { p.Spec().Set("secret", nil); p.Labels().Set("a", "1") },
	"the removal of an explicit false":                       func(p *patch.Patch) { p.Spec().Set("enabled", nil) },
	"an explicit zero":                                       func(p *patch.Patch) { p.Spec().Set("replicas", 0) },
	"an explicit zero by a function":                         func(p *patch.Patch) { p.Append(defaultTo("replicas", int64(0))) },
	"the removal of a field that is not stored":              func(p *patch.Patch) { p.Spec().Set("replicas", nil) },
	"a removal below a field that is not stored":             func(p *patch.Patch) { p.Spec().In("nope").Set("x", nil) },
	"a removal below a field that is not stored, with another change": func(p *patch.Patch) {
		p.Spec().In("nope").Set("x", nil)
		p.Spec().Set("text", "x")
	},
	"the kind": func(p *patch.Patch) {
		p.Append(func(body map[string]any) error {
			getOrCreateObject(body, "metadata", "labels")["kind"] = body["kind"]
			return nil
		})
	},
	"a status and a label": func(p *patch.Patch) {
		p.Append(func(body map[string]any) error {
			getOrCreateObject(body, "status")["state"] = "ready"
			getOrCreateObject(body, "metadata", "labels")["a"] = "1"
			return nil
		})
	},
	"the status": func(p *patch.Patch) {
		p.Append(func(body map[string]any) error { delete(body, "status"); return nil })
	},
	"a function on a Go type": func(p *patch.Patch) {
		p.Append(patch.Typed(func(g *gadget) error {
			g.Spec.Sub.Color = "red"
			g.Spec.Items = append(g.Spec.Items[1:], gadgetItem{Name: "c"})
			return nil
		}))
	},
	"no change": func(p *patch.Patch) { p.Append(func(map[string]any) error { return nil }) },
}

func TestTypedAndRawPatchesAgree(t *testing.T) {
	for name, note := range patches {
		t.Run(name+": typed and unstructured objects agree, also after a conflict [F15]", func(t *testing.T) {
			var want map[string]any
			for _, form := range []func(*server) client.Object{(*server).raw, (*server).typed} {
				for _, stale := range []bool{false, true} {
					s, p := newServer(t, halfKnown), &patch.Patch{}
					note(p)
					obj := form(s)
					if stale {
						s.incrementVersion()
					}
					result := apply(t, p, s, obj, patch.WithStatusSubresource(true))
					delete(getOrCreateObject(s.body, "metadata"), "resourceVersion")
					if want == nil {
						want = s.body
					}
					if diff := cmp.Diff(want, s.body); diff != "" {
						t.Errorf("%T, stale %t (-first +this):\n%s", obj, stale, diff)
					}
					if _, typed := obj.(*gadget); !stale && !typed && result.Reads != 0 || result.Reads > 1 {
						t.Errorf("%T, stale %t: %d reads", obj, stale, result.Reads)
					}
				}
			}
		})
	}
}

func TestTypedReads(t *testing.T) {
	t.Run("a typed object with functions needs one read, and without functions none [F15]", func(t *testing.T) {
		for name, tc := range map[string]struct {
			note  func(*patch.Patch)
			reads int
		}{
			"function":      {func(p *patch.Patch) { p.Append(setLabel("a", "1")) }, 1},
			"merge changes": {func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Status().Set("state", "x") }, 0},
			"a removal":     {func(p *patch.Patch) { p.Labels().Set("a", nil); p.Spec().In("tags").Set("a", nil) }, 0},
		} {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			tc.note(p)
			if result := apply(t, p, s, s.typed(), patch.WithStatusSubresource(true)); result.Reads != tc.reads {
				t.Errorf("%s: %d reads, want %d", name, result.Reads, tc.reads)
			}
		}
	})
	t.Run("a locked patch requires the version of the typed object [F15]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		obj := s.typed()
		s.incrementVersion()
		p.Append(setLabel("a", "1"))
		if _, err := p.Apply(t.Context(), s, obj, patch.WithOptimisticLock()); !apierrors.IsConflict(err) {
			t.Errorf("Apply() = %v, want a conflict", err)
		}
	})
	t.Run("a patch is not applied to a recreated object [F15, F20]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		obj := s.typed()
		s.applyChange(func(body map[string]any) { getOrCreateObject(body, "metadata")["uid"] = "second" })
		p.Append(setLabel("a", "1"))
		if result := apply(t, p, s, obj); !result.Gone || len(result.Calls) > 0 {
			t.Errorf("result %+v, want gone without a write", result)
		}
	})
}

func TestDeletionsAreSent(t *testing.T) {
	for name, tc := range map[string]struct {
		note     func(*patch.Patch)
		requests string
	}{
		"the deletion of an annotation": {func(p *patch.Patch) { p.Annotations().Set("theirs", nil) }, "patch"},
		// A merge patch with the deletion would create the parent. The patch contains the resourceVersion instead,
		// which leads to a conflict here.
		"the deletion of a field": {func(p *patch.Patch) { p.Spec().In("tags").Set("theirs", nil) }, "patch get patch"},
	} {
		t.Run(name+" is sent although the local object does not have its parent [F17]", func(t *testing.T) {
			for _, form := range []func(*server) client.Object{(*server).raw, (*server).typed} {
				s, p := newServer(t, halfKnown), &patch.Patch{}
				obj := form(s)
				s.applyChange(func(body map[string]any) {
					getOrCreateObject(body, "metadata", "annotations")["theirs"] = "1"
					getOrCreateObject(body, "spec", "tags")["theirs"] = "1"
				})
				tc.note(p)
				p.Labels().Set("a", "1")
				apply(t, p, s, obj, patch.WithStatusSubresource(true))
				if asked := strings.Join(listVerbs(s), " "); asked != tc.requests {
					t.Errorf("%T: requests %s, want %s", obj, asked, tc.requests)
				}
				left := len(getOrCreateObject(s.body, "metadata", "annotations")) + len(getOrCreateObject(s.body, "spec", "tags"))
				if left != 1 || getOrCreateObject(s.body, "metadata", "labels")["a"] != "1" {
					t.Errorf("%T: stored %v", obj, s.body)
				}
			}
		})
	}
	t.Run("deletions do not create their parents [F17, K19]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		p.Spec().In("nope").Set("x", nil)
		p.Labels().Set("a", "1")
		apply(t, p, s, s.raw())
		if sent := s.requests[0]; !strings.Contains(sent, `"resourceVersion":"7"`) || strings.Contains(sent, "nope") {
			t.Errorf("sent %s, want the resourceVersion instead of the deletion", sent)
		}
		if _, exists := getOrCreateObject(s.body, "spec")["nope"]; exists {
			t.Error("the parent was created")
		}
	})
}

func TestApplyToRecreatedObject(t *testing.T) {
	for name, tc := range map[string]struct {
		note    func(*patch.Patch)
		guarded string
	}{
		"main resource": {func(p *patch.Patch) { p.Labels().Set("a", "1") }, `"uid":"first"`},
		"status":        {func(p *patch.Patch) { p.Status().Set("state", "x") }, `"resourceVersion":"7"`},
	} {
		t.Run(name+": merge changes apply only to the object with the same UID [F20]", func(t *testing.T) {
			for _, form := range []func(*server) client.Object{(*server).raw, (*server).typed} {
				s, p := newServer(t, halfKnown), &patch.Patch{}
				obj := form(s)
				s.applyChange(func(body map[string]any) { getOrCreateObject(body, "metadata")["uid"] = "second" })
				tc.note(p)
				result := apply(t, p, s, obj, patch.WithStatusSubresource(true))
				if !result.Gone || getOrCreateObject(s.body, "metadata", "labels")["a"] != nil || getOrCreateObject(s.body, "status")["state"] != nil {
					t.Errorf("result %+v, stored %v", result, s.body)
				}
				if !strings.Contains(s.requests[0], tc.guarded) {
					t.Errorf("sent %s, want %s", s.requests[0], tc.guarded)
				}
			}
		})
	}
	t.Run("a status that another client changed is written in the second attempt [F20]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		obj := s.typed()
		s.incrementVersion()
		p.Status().Set("state", "x")
		result := apply(t, p, s, obj, patch.WithStatusSubresource(true))
		if result.Attempts != 2 || getOrCreateObject(s.body, "status")["state"] != "x" {
			t.Errorf("result %+v, stored %v", result, s.body)
		}
	})
}

func TestFinalizersAreGuarded(t *testing.T) {
	for _, list := range []string{"finalizers", "ownerReferences"} {
		t.Run(list+" are set only in the version of the local object [F21]", func(t *testing.T) {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			obj := s.raw()
			s.applyChange(func(body map[string]any) { getOrCreateObject(body, "metadata")[list] = []any{"theirs"} })
			p.Metadata().Set(list, []any{"mine"})
			if _, err := p.Apply(t.Context(), s, obj); !apierrors.IsConflict(err) {
				t.Errorf("Apply() = %v, want a conflict", err)
			}
			if diff := cmp.Diff([]any{"theirs"}, getOrCreateObject(s.body, "metadata")[list]); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			apply(t, p, s, s.raw())
			if diff := cmp.Diff([]any{"mine"}, getOrCreateObject(s.body, "metadata")[list]); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetThroughListFails(t *testing.T) {
	t.Run("setting a value through a list is an error that names the list, and nothing is sent", func(t *testing.T) {
		for _, form := range []func(*server) client.Object{(*server).raw, (*server).typed} {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			p.Spec().In("items", "a").Set("image", "2")
			p.Labels().Set("a", "1")
			_, err := p.Apply(t.Context(), s, form(s))
			requireFieldError(t, err, "spec.items")
			if len(s.requests) > 0 {
				t.Errorf("sent %v", s.requests)
			}
			if _, err := p.ApplyToCopy(form(s)); err == nil {
				t.Error("Preview() gives no error")
			}
		}
	})
	t.Run("an object that is set in place of a list replaces it [K18]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		p.Spec().Set("items", map[string]any{"a": "b"})
		apply(t, p, s, s.raw())
		if _, isObject := getOrCreateObject(s.body, "spec")["items"].(map[string]any); !isObject {
			t.Errorf("stored %v", s.body)
		}
	})
}
