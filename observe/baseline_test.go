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

// TestDriftReasons sends one event after the item's own write, and checks which drift is reported.
func TestDriftReasons(t *testing.T) {
	applied := newObject(withOwnFields(both))
	deleted := metav1.Now()
	cases := map[string]struct {
		reason string
		seen   *metav1.PartialObjectMetadata
		want   []string
	}{
		"Same":         {"the echo of our own write", applied, nil},
		"Touched":      {"a write that took nothing from us", newObject(withOwnFields(both), withVersion("11")), nil},
		"StatusOnly":   {"status does not count", newObject(withOwnFields(both), withVersion("11"), withManager("kubelet", "Update", "status", `{"f:status":{}}`, 9)), nil},
		"ForeignField": {"a field that never was ours", newObject(withOwnFields(both), withVersion("11"), withManager("kubectl", "Update", "", `{"f:data":{"f:z":{}}}`, 9)), nil},
		"OlderState":   {"the watch is behind our own write", newObject(withVersion("9"), withOwnFields(one)), nil},
		"Changed": {
			"a field changed hands",
			newObject(withOwnFields(one), withVersion("11"), withManager("kubectl-edit", "Update", "", `{"f:data":{"f:a":{}}}`, 9)),
			[]string{"4f1e configmaps shop/settings: changed by kubectl-edit (data.a)"},
		},
		"Removed": {"who only removes leaves no trace", newObject(withOwnFields(one), withVersion("11")), []string{"4f1e configmaps shop/settings: changed"}},
		"Scaled": {
			"writes through /scale have no time",
			newObject(withOwnFields(one), withVersion("11"), withManager("kubectl", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`, -1)),
			[]string{"4f1e configmaps shop/settings: changed by kubectl/scale (spec.replicas)"},
		},
		"Wiped":    {"managedFields: [{}]", newObject(withVersion("11")), []string{"4f1e configmaps shop/settings: wiped"}},
		"Deleting": {"finalizers hold it", newObject(withOwnFields(both), withVersion("11"), func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &deleted }), []string{"4f1e configmaps shop/settings: deleting"}},
		"Replaced": {"the name has another object", newObject(withOwnFields(both), withVersion("11"), func(m *metav1.PartialObjectMetadata) { m.UID = "u2" }), []string{"4f1e configmaps shop/settings: replaced"}},
		"Relabelled": {
			"the label names another item", newObject(withOwnFields(both), withVersion("11"), withItemLabel("else")),
			[]string{"4f1e configmaps shop/settings: relabelled by deployerkit-4f1e (data.a, data.b)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, s, l := newTestWatcher(t)
			must(t, s.Replace(nil, "5"))
			w.SetBaseline(item, []BaselineObject{newOwned(applied)})
			for range 2 { // the second event must not be reported again
				must(t, s.Update(tc.seen))
			}
			if diff := cmp.Diff(tc.want, l.listLines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeletionIsDrift(t *testing.T) {
	applied := newObject(withOwnFields(both))
	gone := []string{"4f1e configmaps shop/settings: gone"}
	cases := map[string]struct {
		reason string
		do     func(w *Watcher, s *store)
		want   []string
	}{
		"Deleted":       {"after our write", func(_ *Watcher, s *store) { must(t, s.Add(applied)); must(t, s.Delete(newObject(withVersion("11")))) }, gone},
		"BeforeOurs":    {"the echo of a deletion before our write", func(_ *Watcher, s *store) { must(t, s.Delete(newObject(withVersion("9")))) }, nil},
		"NotYetSeen":    {"the watch has not seen our write yet", func(_ *Watcher, s *store) { must(t, s.Bookmark("9")) }, nil},
		"MissedInAList": {"the watch was interrupted meanwhile", func(_ *Watcher, s *store) { must(t, s.Add(applied)); must(t, s.Replace(nil, "12")) }, gone},
		"OldList":       {"a list from before our write", func(_ *Watcher, s *store) { must(t, s.Replace(nil, "9")) }, nil},
		"Forgotten": {"the item is deleted itself", func(w *Watcher, s *store) {
			must(t, s.Add(applied))
			w.Forget(item)
			must(t, s.Delete(newObject(withVersion("11"))))
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, s, l := newTestWatcher(t)
			must(t, s.Replace(nil, "5"))
			w.SetBaseline(item, []BaselineObject{newOwned(applied)})
			tc.do(w, s)
			if diff := cmp.Diff(tc.want, l.listLines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBaselineOfAStoredInventory covers an inventory that was loaded from storage. Such an inventory contains the UID
// and the key, but no resourceVersion.
func TestBaselineOfAStoredInventory(t *testing.T) {
	remembered := newOwned(newObject(withOwnFields(both)))
	remembered.ResourceVersion = ""
	for _, first := range []string{"list", "inventory"} {
		t.Run(first+" first", func(t *testing.T) {
			w, s, l := newTestWatcher(t)
			list := func() { must(t, s.Replace([]any{newObject(withOwnFields(one), withVersion("7"))}, "8")) }
			if first == "list" {
				list()
			}
			w.SetBaseline(item, []BaselineObject{remembered})
			if first != "list" {
				list()
			}
			if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.listLines()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSuspend ensures that no drift is reported while a run writes objects, and that drift is reported once when the
// run ends.
func TestSuspend(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace([]any{newObject(withOwnFields(both))}, "10"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	w.Suspend(item)
	must(t, s.Update(newObject(withOwnFields(one), withVersion("11"))))
	if got := l.listLines(); got != nil {
		t.Errorf("judged while held: %v", got)
	}
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.listLines()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	if got := l.listLines(); got != nil {
		t.Errorf("the same state was reported again: %v", got)
	}
	healed := newObject(withOwnFields(both), withVersion("12"), func(m *metav1.PartialObjectMetadata) { m.ManagedFields[0].Time = nil })
	w.SetBaseline(item, []BaselineObject{newOwned(healed)})
	must(t, s.Update(healed))
	must(t, s.Update(newObject(withOwnFields(one), withVersion("13"))))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.listLines()); diff != "" {
		t.Errorf("after the heal (-want +got):\n%s", diff)
	}
}

// TestDriftIsReportedAgainAfterAnotherRevert covers another writer that reverts the item's write before the watch has
// shown that write.
func TestDriftIsReportedAgainAfterAnotherRevert(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace([]any{newObject(withOwnFields(both))}, "10"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both), withVersion("10")))})
	must(t, s.Update(newObject(withOwnFields(one), withVersion("11"))))
	want := []string{"4f1e configmaps shop/settings: changed"}
	if diff := cmp.Diff(want, l.listLines()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	w.Suspend(item) // the item's write has the resource version 12
	must(t, s.Update(newObject(withOwnFields(one), withVersion("13"))))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both), withVersion("12")))})
	if diff := cmp.Diff(want, l.listLines()); diff != "" {
		t.Errorf("after the write (-want +got):\n%s", diff)
	}
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both), withVersion("12")))})
	if got := l.listLines(); got != nil {
		t.Errorf("nothing was written, and yet %v", got)
	}
}

// TestBaselineOfARestoredTarget covers a target that was restored from a backup, so that its resource versions are
// lower than before. If the backup does not contain a write of the item, this counts as drift.
func TestBaselineOfARestoredTarget(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace([]any{newObject(withOwnFields(both), withVersion("100"))}, "100"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both), withVersion("100")))})
	must(t, s.Replace([]any{newObject(withOwnFields(one), withVersion("50"))}, "60"))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: changed"}, l.listLines()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestObjectsWithoutAnEntryDriftOnlyByDeletion(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace([]any{newObject()}, "10"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject())})
	must(t, s.Update(newObject(withVersion("11"), withOwnFields(one))))
	if got := l.listLines(); got != nil {
		t.Errorf("a kind without an entry drifted: %v", got)
	}
	must(t, s.Delete(newObject(withVersion("12"))))
	if got := l.listLines(); len(got) != 1 {
		t.Errorf("its deletion counts, got %v", got)
	}
}

// TestCopiedLabelsAreNoDrift ensures that objects to which a controller copies the item's label, such as
// EndpointSlices, do not count as drift.
func TestCopiedLabelsAreNoDrift(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace(nil, "5"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	must(t, s.Add(newObject(func(m *metav1.PartialObjectMetadata) { m.Name = "copy" })))
	must(t, s.Delete(newObject(withVersion("12"), func(m *metav1.PartialObjectMetadata) { m.Name = "copy" })))
	if got := l.listLines(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestGet(t *testing.T) {
	w, s, _ := newTestWatcher(t)
	get := func() (State, bool) { return w.Get(configMaps, settings.NamespacedName) }
	if _, ok := get(); ok {
		t.Error("known before the first list")
	}
	must(t, s.Replace([]any{newObject(withOwnFields(one), withVersion("7"))}, "8"))
	want := State{UID: "u1", ResourceVersion: "7", Fingerprint: newOwned(newObject(withOwnFields(one))).Fingerprint, Item: item}
	if got, ok := get(); !ok || !cmp.Equal(want, got) {
		t.Errorf("(%v, -want +got):\n%s", ok, cmp.Diff(want, got))
	}
	answer := newOwned(newObject(withOwnFields(both)))
	w.SetBaseline(item, []BaselineObject{answer})
	want = State{UID: "u1", ResourceVersion: "10", Fingerprint: answer.Fingerprint, Item: item}
	if got, ok := get(); !ok || !cmp.Equal(want, got) {
		t.Errorf("our own answer is newer (%v, -want +got):\n%s", ok, cmp.Diff(want, got))
	}
	s.lastErr = errForeign
	if _, ok := get(); ok {
		t.Error("known although the watch is interrupted")
	}
	s.lastErr = nil
	must(t, s.Delete(newObject(withVersion("12"))))
	if _, ok := get(); ok {
		t.Error("known although it is gone")
	}
}

func TestOnChange(t *testing.T) {
	w, s, _ := newTestWatcher(t)
	must(t, s.Replace(nil, "5"))
	var got []string
	stop := w.OnChange(item, func(o Object) { got = append(got, o.String()) })
	w.OnChange("else", func(o Object) { got = append(got, "else "+o.String()) })
	must(t, s.Add(newObject()))
	must(t, s.Update(newObject(withVersion("11"), withItemLabel("else"))))
	stop()
	stop()
	must(t, s.Update(newObject(withVersion("12"))))
	want := []string{"configmaps shop/settings", "configmaps shop/settings", "else configmaps shop/settings", "else configmaps shop/settings"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTwoItems covers an object that another item has taken over. A call of Forget for the old owner must not affect
// the new owner.
func TestTwoItems(t *testing.T) {
	w, s, l := newTestWatcher(t)
	must(t, s.Replace(nil, "5"))
	w.SetBaseline("old", []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	w.Forget("old")
	must(t, s.Add(newObject(withOwnFields(both))))
	must(t, s.Delete(newObject(withVersion("11"))))
	if diff := cmp.Diff([]string{"4f1e configmaps shop/settings: gone"}, l.listLines()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.GetStats(); got != (Stats{Watches: 1, Items: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestDriftReasonOfFinishedObjects(t *testing.T) {
	e := &expectation{baseline: &baseline{item: item}, uid: "u1", finishes: true}
	deleting := newStoredMetadata(newObject(withOwnFields(both), func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &start }))
	t.Run("the deletion of an object that disappears after its work is no drift [F91]", func(t *testing.T) {
		if gone, going := e.getDriftReason(nil), e.getDriftReason(deleting); gone != "" || going != "" {
			t.Errorf("got %q when the object is gone, and %q while it is being deleted", gone, going)
		}
	})
	t.Run("the deletion of another object is drift [F91]", func(t *testing.T) {
		e := &expectation{baseline: &baseline{item: item}, uid: "u1"}
		if gone, going := e.getDriftReason(nil), e.getDriftReason(deleting); gone != DriftReasonDeleted || going != DriftReasonDeleting {
			t.Errorf("got %q when the object is gone, and %q while it is being deleted", gone, going)
		}
	})
}
