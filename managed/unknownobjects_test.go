// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newUnknownEnv returns a world whose target contains an object with the marks of the item that the inventory lacks.
// The watch has reported the object.
func newUnknownEnv(t *testing.T, manager string) (*testEnv, *metadatafake.FakeMetadataClient) {
	t.Helper()
	w := newTestEnv(t)
	client := w.cluster.metadata.(*metadatafake.FakeMetadataClient)
	obj := newMarkedObject("a", w.item.UID, func(m *metav1.PartialObjectMetadata) {
		m.ResourceVersion = "10"
		m.Annotations[ownership.AnnotationLandscape] = "landscape"
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager}}
	})
	if err := client.Tracker().Add(obj); err != nil {
		t.Fatal(err)
	}
	watches := make(chan struct{}, 1) // the fake client loses changes between its list and its watch
	client.PrependWatchReactor("configmaps", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		out, err := client.Tracker().Watch(configMaps, a.GetNamespace())
		select {
		case watches <- struct{}{}:
		default:
		}
		return true, out, err
	})
	if _, err := w.cluster.watcher.Watch(t.Context(), configMaps, "ns"); err != nil {
		t.Fatal(err)
	}
	<-watches
	r := w.begin(false)
	w.waitUntil("the watch reports the object", func() bool { return r.setKnownObjects(false) })
	client.ClearActions()
	return w, client
}

func TestAddUnknownObjects(t *testing.T) {
	collect := func(t *testing.T, w *testEnv) *Run {
		t.Helper()
		r := w.begin(false)
		if err := r.addUnknownObjects(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.setUnknownObjects()
		return r
	}
	condition := func(w *testEnv) bool {
		return contract.GetCondition(w.item.Status.Conditions, ConditionUnknownObjects) != nil
	}

	t.Run("no longer reports a copy that is gone [F109]", func(t *testing.T) {
		w, client := newUnknownEnv(t, "mirror")
		r := collect(t, w)
		if !condition(w) {
			t.Fatal("the copy is not reported")
		}
		if err := client.Tracker().Delete(configMaps, "ns", "a"); err != nil {
			t.Fatal(err)
		}
		w.waitUntil("the watch reports the deletion", func() bool { return len(r.Cluster.watcher.ListObjects(configMaps, r.Owner)) == 0 })
		w.waitUntil("the condition is removed", func() bool { collect(t, w); return !condition(w) })
	})
	for name, tc := range map[string]struct {
		fault     error
		deleting  bool
		fails     bool
		isIgnored bool
	}{
		"a read that the target forbids ends no run [F109]":                            {fault: forbidden, isIgnored: true},
		"a read that the target forbids ends no deletion [F109]":                       {fault: forbidden, deleting: true, isIgnored: true},
		"a read that fails ends no run, and is tried again [F109]":                     {fault: apierrors.NewInternalError(errors.New("down"))},
		"a kind that is not served ends a deletion, which is tried again [F70] [F109]": {fault: &absence.KindError{State: absence.KindNotServed}, deleting: true, fails: true},
		"a kind that is gone ends no deletion [F70] [F109]":                            {fault: &absence.KindError{State: absence.KindGone}, deleting: true},
		"a read that fails ends a deletion, which is tried again [F109]":               {fault: apierrors.NewInternalError(errors.New("down")), deleting: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, client := newUnknownEnv(t, ownership.FormatFieldManager("4f1e"))
			if tc.deleting {
				w.item.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
			}
			client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fault })
			r := w.begin(false)
			if err := r.addUnknownObjects(t.Context(), nil); (err != nil) != tc.fails {
				t.Errorf("the run ends with %v", err)
			}
			r.setUnknownObjects()
			if condition(w) != tc.isIgnored {
				t.Errorf("the condition is set: %t", !tc.isIgnored)
			}
			if r.setKnownObjects(true) == tc.isIgnored {
				t.Errorf("the object is ignored until the next job: %t", !tc.isIgnored)
			}
		})
	}

	t.Run("a deletion finds an object of a kind in the inventory without an earlier watch [F109]", func(t *testing.T) {
		w := newTestEnv(t)
		w.item.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
		obj := newMarkedObject("b", w.item.UID, func(m *metav1.PartialObjectMetadata) { m.Annotations[ownership.AnnotationLandscape] = "landscape" })
		if err := w.cluster.metadata.(*metadatafake.FakeMetadataClient).Tracker().Add(obj); err != nil {
			t.Fatal(err)
		}
		r := w.begin(false)
		r.Inventory.Entries = []apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "u-a"}}
		complete := func(entry *apply.Entry, _ metav1.Object) { entry.Component = "web" }
		ctx, _ := landscapertest.NewUnitCall(t.Context(), w.item)
		if err := r.RestoreInventory(ctx, Search{Complete: complete}); err != nil {
			t.Fatal(err)
		}
		if n := len(r.Inventory.Entries); n != 2 || r.Inventory.Entries[1].Name != "b" || r.Inventory.Entries[1].Component != "web" {
			t.Errorf("the inventory contains %+v", r.Inventory.Entries)
		}
	})

	t.Run("each job reads again what the target forbade to read [F109]", func(t *testing.T) {
		w, client := newUnknownEnv(t, "mirror")
		isForbidden := true
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return isForbidden, nil, forbidden })
		collect(t, w)
		isForbidden = false
		collect(t, w)
		c := contract.GetCondition(w.item.Status.Conditions, ConditionUnknownObjects)
		if c == nil || !strings.HasSuffix(c.Message, "ConfigMap ns/a") {
			t.Errorf("the condition is %+v", c)
		}
	})
}

var forbidden = apierrors.NewForbidden(configMaps.GroupResource(), "a", errors.New("no"))
