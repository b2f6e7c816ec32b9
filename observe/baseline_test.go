// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	both = `{"f:data":{"f:a":{},"f:b":{}}}`
	one  = `{"f:data":{"f:b":{}}}`
)

// TestVerdicts sends one event after the item's own write, and checks which drift is reported.
func TestVerdicts(t *testing.T) {
	applied := object(ours(both))
	deleted := metav1.Now()
	cases := map[string]struct {
		reason string
		seen   *metav1.PartialObjectMetadata
		want   []string
	}{
		"Same":         {"the echo of our own write", applied, nil},
		"Touched":      {"a write that took nothing from us", object(ours(both), at("11")), nil},
		"StatusOnly":   {"status does not count", object(ours(both), at("11"), by("kubelet", "Update", "status", `{"f:status":{}}`, 9)), nil},
		"ForeignField": {"a field that never was ours", object(ours(both), at("11"), by("kubectl", "Update", "", `{"f:data":{"f:z":{}}}`, 9)), nil},
		"OlderState":   {"the watch is behind our own write", object(at("9"), ours(one)), nil},
		"Changed": {
			"a field changed hands",
			object(ours(one), at("11"), by("kubectl-edit", "Update", "", `{"f:data":{"f:a":{}}}`, 9)),
			[]string{"4f1e configmaps shop/settings: changed by kubectl-edit (data.a)"},
		},
		"Removed": {"who only removes leaves no trace", object(ours(one), at("11")), []string{"4f1e configmaps shop/settings: changed"}},
		"Scaled": {
			"writes through /scale have no time",
			object(ours(one), at("11"), by("kubectl", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`, -1)),
			[]string{"4f1e configmaps shop/settings: changed by kubectl/scale (spec.replicas)"},
		},
		"Wiped":    {"managedFields: [{}]", object(at("11")), []string{"4f1e configmaps shop/settings: wiped"}},
		"Deleting": {"finalizers hold it", object(ours(both), at("11"), func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &deleted }), []string{"4f1e configmaps shop/settings: deleting"}},
		"Replaced": {"the name has another object", object(ours(both), at("11"), func(m *metav1.PartialObjectMetadata) { m.UID = "u2" }), []string{"4f1e configmaps shop/settings: replaced"}},
		"Relabelled": {
			"the label names another item", object(ours(both), at("11"), labelled("else")),
			[]string{"4f1e configmaps shop/settings: relabelled by deployerkit-4f1e (data.a, data.b)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, s, l := fed(t)
			must(t, s.Replace(nil, "5"))
			w.SetBaseline(item, []Owned{expected(applied)})
			for range 2 { // the second event must not be reported again
				must(t, s.Update(tc.seen))
			}
			if diff := cmp.Diff(tc.want, l.take()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleted(t *testing.T) {
	applied := object(ours(both))
	gone := []string{"4f1e configmaps shop/settings: gone"}
	cases := map[string]struct {
		reason string
		do     func(w *Watcher, s *store)
		want   []string
	}{
		"Deleted":       {"after our write", func(_ *Watcher, s *store) { must(t, s.Add(applied)); must(t, s.Delete(object(at("11")))) }, gone},
		"BeforeOurs":    {"the echo of a deletion before our write", func(_ *Watcher, s *store) { must(t, s.Delete(object(at("9")))) }, nil},
		"NotYetSeen":    {"the watch has not seen our write yet", func(_ *Watcher, s *store) { must(t, s.Bookmark("9")) }, nil},
		"MissedInAList": {"the watch was interrupted meanwhile", func(_ *Watcher, s *store) { must(t, s.Add(applied)); must(t, s.Replace(nil, "12")) }, gone},
		"OldList":       {"a list from before our write", func(_ *Watcher, s *store) { must(t, s.Replace(nil, "9")) }, nil},
		"Forgotten": {"the item is deleted itself", func(w *Watcher, s *store) {
			must(t, s.Add(applied))
			w.Forget(item)
			must(t, s.Delete(object(at("11"))))
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, s, l := fed(t)
			must(t, s.Replace(nil, "5"))
			w.SetBaseline(item, []Owned{expected(applied)})
			tc.do(w, s)
			if diff := cmp.Diff(tc.want, l.take()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestart covers an inventory that was loaded from storage. Such an inventory contains the UID and the key, but no
// resourceVersion.
func TestRestart(t *testing.T) {
	remembered := expected(object(ours(both)))
	remembered.ResourceVersion = ""
	for _, first := range []string{"list", "inventory"} {
		t.Run(first+" first", func(t *testing.T) {
			w, s, l := fed(t)
			list := func() { must(t, s.Replace([]any{object(ours(one), at("7"))}, "8")) }
			if first == "list" {
				list()
			}
			w.SetBaseline(item, []Owned{remembered})
			if first != "list" {
				list()
			}
			if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.take()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHold ensures that no drift is reported while a run writes objects, and that drift is reported once when the run
// ends.
func TestHold(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace([]any{object(ours(both))}, "10"))
	w.SetBaseline(item, []Owned{expected(object(ours(both)))})
	w.Suspend(item)
	must(t, s.Update(object(ours(one), at("11"))))
	if got := l.take(); got != nil {
		t.Errorf("judged while held: %v", got)
	}
	w.SetBaseline(item, []Owned{expected(object(ours(both)))})
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.SetBaseline(item, []Owned{expected(object(ours(both)))})
	if got := l.take(); got != nil {
		t.Errorf("the same state was reported again: %v", got)
	}
	healed := object(ours(both), at("12"), func(m *metav1.PartialObjectMetadata) { m.ManagedFields[0].Time = nil })
	w.SetBaseline(item, []Owned{expected(healed)})
	must(t, s.Update(healed))
	must(t, s.Update(object(ours(one), at("13"))))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.take()); diff != "" {
		t.Errorf("after the heal (-want +got):\n%s", diff)
	}
}

// TestInsistence covers another writer that reverts the item's write before the watch has shown that write.
func TestInsistence(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace([]any{object(ours(both))}, "10"))
	w.SetBaseline(item, []Owned{expected(object(ours(both), at("10")))})
	must(t, s.Update(object(ours(one), at("11"))))
	want := []string{"4f1e configmaps shop/settings: changed"}
	if diff := cmp.Diff(want, l.take()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	w.Suspend(item) // the item's write has the resource version 12
	must(t, s.Update(object(ours(one), at("13"))))
	w.SetBaseline(item, []Owned{expected(object(ours(both), at("12")))})
	if diff := cmp.Diff(want, l.take()); diff != "" {
		t.Errorf("after the write (-want +got):\n%s", diff)
	}
	w.SetBaseline(item, []Owned{expected(object(ours(both), at("12")))})
	if got := l.take(); got != nil {
		t.Errorf("nothing was written, and yet %v", got)
	}
}

// TestRestored covers a target that was restored from a backup, so that its resource versions are lower than before. If
// the backup does not contain a write of the item, this counts as drift.
func TestRestored(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace([]any{object(ours(both), at("100"))}, "100"))
	w.SetBaseline(item, []Owned{expected(object(ours(both), at("100")))})
	must(t, s.Replace([]any{object(ours(one), at("50"))}, "60"))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUntracked(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace([]any{object()}, "10"))
	w.SetBaseline(item, []Owned{expected(object())})
	must(t, s.Update(object(at("11"), ours(one))))
	if got := l.take(); got != nil {
		t.Errorf("a kind without an entry drifted: %v", got)
	}
	must(t, s.Delete(object(at("12"))))
	if got := l.take(); len(got) != 1 {
		t.Errorf("its deletion counts, got %v", got)
	}
}

// TestCopies ensures that objects to which a controller copies the item's label, such as EndpointSlices, do not count
// as drift.
func TestCopies(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace(nil, "5"))
	w.SetBaseline(item, []Owned{expected(object(ours(both)))})
	must(t, s.Add(object(func(m *metav1.PartialObjectMetadata) { m.Name = "copy" })))
	must(t, s.Delete(object(at("12"), func(m *metav1.PartialObjectMetadata) { m.Name = "copy" })))
	if got := l.take(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestGet(t *testing.T) {
	w, s, _ := fed(t)
	get := func() (State, bool) { return w.Get(configMaps, settings.NamespacedName) }
	if _, ok := get(); ok {
		t.Error("known before the first list")
	}
	must(t, s.Replace([]any{object(ours(one), at("7"))}, "8"))
	want := State{UID: "u1", ResourceVersion: "7", Key: expected(object(ours(one))).Key, Item: item}
	if got, ok := get(); !ok || !cmp.Equal(want, got) {
		t.Errorf("(%v, -want +got):\n%s", ok, cmp.Diff(want, got))
	}
	answer := expected(object(ours(both)))
	w.SetBaseline(item, []Owned{answer})
	want = State{UID: "u1", ResourceVersion: "10", Key: answer.Key, Item: item}
	if got, ok := get(); !ok || !cmp.Equal(want, got) {
		t.Errorf("our own answer is newer (%v, -want +got):\n%s", ok, cmp.Diff(want, got))
	}
	s.trouble = errForeign
	if _, ok := get(); ok {
		t.Error("known although the watch is interrupted")
	}
	s.trouble = nil
	must(t, s.Delete(object(at("12"))))
	if _, ok := get(); ok {
		t.Error("known although it is gone")
	}
}

func TestFollow(t *testing.T) {
	w, s, _ := fed(t)
	must(t, s.Replace(nil, "5"))
	var got []string
	stop := w.OnChange(item, func(o Object) { got = append(got, o.String()) })
	w.OnChange("else", func(o Object) { got = append(got, "else "+o.String()) })
	must(t, s.Add(object()))
	must(t, s.Update(object(at("11"), labelled("else"))))
	stop()
	stop()
	must(t, s.Update(object(at("12"))))
	want := []string{"configmaps shop/settings", "configmaps shop/settings", "else configmaps shop/settings", "else configmaps shop/settings"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTwoItems covers an object that another item has taken over. A call of Forget for the old owner must not affect
// the new owner.
func TestTwoItems(t *testing.T) {
	w, s, l := fed(t)
	must(t, s.Replace(nil, "5"))
	w.SetBaseline("old", []Owned{expected(object(ours(both)))})
	w.SetBaseline(item, []Owned{expected(object(ours(both)))})
	w.Forget("old")
	must(t, s.Add(object(ours(both))))
	must(t, s.Delete(object(at("11"))))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: gone"}, l.take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.Stats(); got != (Stats{Watches: 1, Items: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestDriftReasonOfFinishedObjects(t *testing.T) {
	e := &expectation{baseline: &baseline{item: item}, uid: "u1", finishes: true}
	deleting := reduceMeta(object(ours(both), func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &start }))
	t.Run("the deletion of an object that disappears after its work is no drift [F91]", func(t *testing.T) {
		if gone, going := e.driftReason(nil), e.driftReason(deleting); gone != "" || going != "" {
			t.Errorf("got %q when the object is gone, and %q while it is being deleted", gone, going)
		}
	})
	t.Run("the deletion of another object is drift [F91]", func(t *testing.T) {
		e := &expectation{baseline: &baseline{item: item}, uid: "u1"}
		if gone, going := e.driftReason(nil), e.driftReason(deleting); gone != DriftReasonDeleted || going != DriftReasonDeleting {
			t.Errorf("got %q when the object is gone, and %q while it is being deleted", gone, going)
		}
	})
}
