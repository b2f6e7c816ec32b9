// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestToStoredObjectIsIdempotent checks that toStoredObject accepts its own result, because the reflector may call it
// twice for an object.
func TestToStoredObjectIsIdempotent(t *testing.T) {
	once, err := toStoredObject(newObject(withOwnFields(both)))
	must(t, err)
	twice, err := toStoredObject(once)
	must(t, err)
	if once != twice {
		t.Error("the second reduction gave something else")
	}
	got := once.(*storedObject).toState()
	want := State{UID: "u1", ResourceVersion: "10", Fingerprint: newOwned(newObject(withOwnFields(both))).Fingerprint, Item: item}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(once)
	if key != "shop/settings" || err != nil {
		t.Errorf("the reflector's store cannot find it: %q, %v", key, err)
	}
}

func TestStoredObjectKeepsFinalizers(t *testing.T) {
	deleting := func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &start }
	held := func(m *metav1.PartialObjectMetadata) {
		for range 20 {
			m.Finalizers = append(m.Finalizers, "example.org/held")
		}
	}
	t.Run("keeps a limited number of finalizers of an object that is being deleted [F79]", func(t *testing.T) {
		if got := newStoredMetadata(newObject(withOwnFields(both), held, deleting)).toState().Finalizers; len(got) != 8 || got[0] != "example.org/held" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("keeps no finalizers of other objects [F79]", func(t *testing.T) {
		if got := newStoredMetadata(newObject(withOwnFields(both), held)).toState().Finalizers; got != nil {
			t.Errorf("got %q", got)
		}
	})
}

// TestToStoredObjectNeverFails ensures that toStoredObject returns no error, because the reflector would then silently
// omit the object.
func TestToStoredObjectNeverFails(t *testing.T) {
	for _, odd := range []any{nil, "x", 7, cache.DeletedFinalStateUnknown{Key: "a"}, &metav1.Status{}} {
		if got, err := toStoredObject(odd); err != nil || got != odd {
			t.Errorf("%T: got %v, %v", odd, got, err)
		}
	}
	_, s, _ := newTestWatcher(t)
	if err := s.Add("x"); err == nil {
		t.Error("stored what is no object")
	}
	must(t, s.Delete(cache.DeletedFinalStateUnknown{Key: "shop/settings", Obj: newObject()}))
}

func TestListOtherChanges(t *testing.T) {
	many := `{"f:data":{"f:a1":{},"f:a2":{},"f:a3":{},"f:a4":{},"f:a5":{},"f:a6":{},"f:a7":{},"f:a8":{},"f:a9":{},"f:b":{}}}`
	long := strings.Repeat("k", 300)
	cases := map[string]struct {
		reason string
		obj    *metav1.PartialObjectMetadata
		want   []Change
	}{
		"NobodyElse": {"only we wrote", newObject(withOwnFields(both)), nil},
		"Before": {"a write before our last one is not it", newObject(withOwnFields(one), withManager("old", "Update", "", `{"f:data":{"f:a":{}}}`, 0), func(m *metav1.PartialObjectMetadata) {
			later := metav1.NewTime(start.Add(time.Second))
			m.ManagedFields[0].Time = &later
		}), nil},
		"CoOwner":    {"the same value, we still own it", newObject(withOwnFields(both), withManager("co", "Apply", "", one, 5)), nil},
		"Status":     {"ignores the status", newObject(withOwnFields(one), withManager("kubelet", "Update", "status", `{"f:status":{"f:x":{}}}`, 5)), nil},
		"OwnPatch":   {"patches of the item are no foreign change", newObject(withOwnFields(one), withManager("deployerkit-4f1e-patch", "Update", "", `{"f:data":{"f:a":{}}}`, 5)), nil},
		"Unreadable": {"an entry that cannot be read", newObject(withOwnFields(one), withManager("odd", "Update", "", `{`, 5)), nil},
		"NewestFirst": {
			"three at most, newest first, entries without time last",
			newObject(withOwnFields(`{}`), withManager("scaler", "Update", "scale", one, -1), withManager("a", "Update", "", one, 5), withManager("b", "Update", "", one, 7), withManager("c", "Update", "", one, 6)),
			[]Change{{Manager: "b", Fields: []string{"data.b"}}, {Manager: "c", Fields: []string{"data.b"}}, {Manager: "a", Fields: []string{"data.b"}}},
		},
		"Many": {
			"eight fields at most", newObject(withOwnFields(`{}`), withManager("a", "Update", "", many, 5)),
			[]Change{{Manager: "a", Fields: []string{"data.a1", "data.a2", "data.a3", "data.a4", "data.a5", "data.a6", "data.a7", "data.a8"}, More: 2}},
		},
		"Long": {
			"a long path is cut", newObject(withOwnFields(`{}`), withManager("a", "Update", "", `{"f:data":{"f:`+long+`":{}}}`, 5)),
			[]Change{{Manager: "a", Fields: []string{"data." + long[:115] + "…"}}},
		},
		"ListItem": {
			"keys of list items are named", newObject(withOwnFields(`{}`), withManager("a", "Update", "", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}`, 5)),
			[]Change{{Manager: "a", Fields: []string{`spec.containers[name="web"].image`}}},
		},
		"Wiped": {"lists all managers if our entry is missing", newObject(withManager("a", "Update", "", one, 5)), []Change{{Manager: "a", Fields: []string{"data.b"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, listOtherChanges(tc.obj, "deployerkit-4f1e")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEventString(t *testing.T) {
	e := Drift{Object: settings, Reason: DriftReasonChanged, Changes: []Change{
		{Manager: "a", Fields: []string{"data.x", "data.y"}, More: 3}, {Manager: "b", Subresource: "scale"},
	}}
	want := "configmaps shop/settings: changed by a (data.x, data.y and 3 more); b/scale"
	if got := e.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Object{Resource: configMaps.GroupResource().WithVersion("v1"), NamespacedName: settings.NamespacedName}).String(); got != "configmaps shop/settings" {
		t.Error(got)
	}
}

func BenchmarkToStoredObject(b *testing.B) {
	obj := newObject(withOwnFields(both), withManager("kubelet", "Update", "status", one, 5))
	b.ReportAllocs()
	for b.Loop() {
		newStoredMetadata(obj)
	}
}
