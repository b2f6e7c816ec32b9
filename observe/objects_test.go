// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

var (
	ownerA = ownership.Owner{UID: item, Landscape: "land", Namespace: "ns", Name: "a"}
	ownerB = ownership.Owner{UID: "bert", Landscape: "land", Namespace: "ns", Name: "b"}
)

// newWhole returns a ConfigMap of an item. It has data and an entry in managedFields.
func newWhole(owner ownership.Owner, name, version string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"n": int64(3), "f": 1.5, "text": "<a> & b"},
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": "uid of " + name, "resourceVersion": version},
	}}
	owner.Mark(out)
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: owner.FieldManager(), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &start,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(both),
	}})
	return out
}

// newObjectWatcher creates a fake cluster with the given objects. It returns a Watcher for the cluster, and the client
// of the cluster.
func newObjectWatcher(t *testing.T, objects ...runtime.Object) (*Watcher, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"}, objects...)
	w := New(newFakeTarget(t, allowAll), Options{DynamicClient: client})
	w.Start(t.Context())
	t.Cleanup(w.Wait)
	return w, client
}

// watchConfigMaps opens a watch that stores whole ConfigMaps.
func watchConfigMaps(t *testing.T, w *Watcher) {
	t.Helper()
	if c, err := w.WatchObjects(t.Context(), configMaps); err != nil || !c.IsComplete() {
		t.Fatalf("watch: %+v, %v", c, err)
	}
}

// listVerbs returns the verbs of the requests, after the watch has begun.
func listVerbs(t *testing.T, client *dynamicfake.FakeDynamicClient) (verbs []string) {
	t.Helper()
	waitUntil(t, "the watch begins", func() bool {
		verbs = nil
		for _, action := range client.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		return slices.Contains(verbs, "watch")
	})
	return verbs
}

func toKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func listNames(names []types.NamespacedName) (out []string) {
	for _, name := range names {
		out = append(out, name.Name)
	}
	return out
}

func TestWholeObjects(t *testing.T) {
	live := newWhole(ownerA, "one", "5")
	w, client := newObjectWatcher(t, live.DeepCopy())
	watchConfigMaps(t, w)
	want := live.DeepCopy()
	want.SetManagedFields(nil)
	got, current := w.GetObject(t.Context(), configMaps, toKey("one"))
	if diff := cmp.Diff(want, got); diff != "" || !current {
		t.Errorf("current %t (-want +got):\n%s", current, diff)
	}
	if missing, current := w.GetObject(t.Context(), configMaps, toKey("missing")); missing != nil || !current {
		t.Errorf("%v, %t", missing, current)
	}
	t.Run("one list and one watch serve both readers [F26]", func(t *testing.T) {
		watchConfigMaps(t, w)
		if c, err := w.Watch(t.Context(), configMaps, "shop"); err != nil || !c.IsComplete() {
			t.Fatalf("watch: %+v, %v", c, err)
		}
		seen, known := w.Get(configMaps, toKey("one"))
		if key := ownership.ComputeFingerprint(live, ownerA.FieldManager()); !known || seen.Fingerprint != key || key == "" || seen.Item != item {
			t.Errorf("seen %+v, %t; want the key %s", seen, known, key)
		}
		if diff := cmp.Diff([]string{"list", "watch"}, listVerbs(t, client)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWholeObjectsOfNamespaces(t *testing.T) {
	w, client := newObjectWatcher(t, newWhole(ownerA, "one", "5"))
	requests := 0
	client.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		requests++ // no lock is needed: the list of the cluster ends before the list of a namespace begins
		if a.GetNamespace() == "" {
			return true, nil, newForbiddenFunc("all")
		}
		return false, nil, nil
	})
	var covered [2]Coverage
	for i, watch := range []func(context.Context, schema.GroupVersionResource, ...string) (Coverage, error){w.WatchObjects, w.Watch} {
		c, err := watch(t.Context(), configMaps, "shop")
		must(t, err)
		covered[i] = c
	}
	t.Run("a refusal counts for both readers [F33]", func(t *testing.T) {
		if diff := cmp.Diff(covered[0], covered[1]); diff != "" || covered[0].Scope != ScopeNamespaces || !covered[0].IsComplete() {
			t.Errorf("%+v\n%s", covered[0], diff)
		}
		if requests != 2 {
			t.Errorf("%d lists, want one of the cluster and one of the namespace", requests)
		}
	})
	if obj, current := w.GetObject(t.Context(), configMaps, toKey("one")); obj == nil || !current {
		t.Errorf("%v, %t", obj, current)
	}
}

func TestMetadataBecomesWholeObjects(t *testing.T) {
	w, _ := newObjectWatcher(t, newWhole(ownerA, "one", "5"))
	if c, err := w.Watch(t.Context(), configMaps); err != nil || !c.IsComplete() {
		t.Fatalf("watch: %+v, %v", c, err)
	}
	if obj, current := w.GetObject(t.Context(), configMaps, toKey("one")); obj != nil || !current {
		t.Fatalf("metadata only: %v, %t", obj, current)
	}
	watchConfigMaps(t, w)
	if obj, current := w.GetObject(t.Context(), configMaps, toKey("one")); obj == nil || !current {
		t.Errorf("whole objects: %v, %t", obj, current)
	}
	if got := w.GetStats().Watches; got != 1 {
		t.Errorf("%d watches, want 1", got)
	}
}

func TestListObjects(t *testing.T) {
	again := ownerA
	again.UID = "anna-2"
	alias := again
	alias.Landscape, alias.LandscapeAlias = "9c02", ownerA.Landscape
	w, _ := newObjectWatcher(t, newWhole(ownerA, "one", "5"), newWhole(again, "two", "6"), newWhole(ownerB, "three", "7"))
	watchConfigMaps(t, w)
	for name, tc := range map[string]struct {
		owner ownership.Owner
		want  []string
	}{
		"an item finds what its earlier life had":          {again, []string{"one", "two"}},
		"also under another identity of the cluster [F58]": {alias, []string{"one", "two"}},
		"another item finds its own":                       {ownerB, []string{"three"}},
		"an item without objects finds none":               {ownership.Owner{UID: "carl", Landscape: "land", Namespace: "ns", Name: "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, listNames(w.ListObjects(configMaps, tc.owner))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnObjectChange(t *testing.T) {
	w, client := newObjectWatcher(t, newWhole(ownerA, "one", "5"))
	var mu sync.Mutex
	told := map[types.UID]int{}
	w.OnObjectChange(func(uid types.UID) {
		mu.Lock()
		defer mu.Unlock()
		told[uid]++
	})
	wantTold := func(what string, ofAnna, ofBert int) {
		t.Helper()
		waitUntil(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return told[ownerA.UID] == ofAnna && told[ownerB.UID] == ofBert
		})
	}
	watchConfigMaps(t, w)
	wantTold("the first list", 1, 0)
	listVerbs(t, client) // the fake cluster loses events from before the watch
	resource := client.Resource(configMaps).Namespace("shop")
	_, err := resource.Create(t.Context(), newWhole(ownerB, "two", "6"), metav1.CreateOptions{})
	must(t, err)
	wantTold("a new object", 1, 1)
	_, err = resource.Update(t.Context(), newWhole(ownerB, "one", "7"), metav1.UpdateOptions{})
	must(t, err)
	wantTold("an object that another item takes", 2, 2)
	must(t, resource.Delete(t.Context(), "two", metav1.DeleteOptions{}))
	wantTold("a deletion", 2, 3)
	if diff := cmp.Diff([]string{"one"}, listNames(w.ListObjects(configMaps, ownerB))); diff != "" {
		t.Error(diff)
	}
	if got := w.ListObjects(configMaps, ownerA); len(got) > 0 {
		t.Errorf("anna still has %v", got)
	}
}

// TestRelistReportsDifferences ensures that a new list notifies the owners of all objects that changed while the watch
// was interrupted.
func TestRelistReportsDifferences(t *testing.T) {
	_, s, _ := newTestWatcher(t)
	s.whole = true
	told := map[types.UID]int{}
	s.w.OnObjectChange(func(uid types.UID) { told[uid]++ })
	must(t, s.Replace([]any{newWhole(ownerA, "same", "1"), newWhole(ownerA, "gone", "2"), newWhole(ownerB, "changed", "3")}, "3"))
	clear(told)
	must(t, s.Replace([]any{newWhole(ownerA, "same", "1"), newWhole(ownerB, "changed", "5"), newWhole(ownerB, "new", "6")}, "6"))
	if diff := cmp.Diff(map[types.UID]int{ownerA.UID: 1, ownerB.UID: 2}, told); diff != "" {
		t.Error(diff)
	}
}

func TestIndexIsEmptyInTheEnd(t *testing.T) {
	_, s, _ := newTestWatcher(t)
	s.whole = true
	must(t, s.Replace([]any{newWhole(ownerA, "one", "1")}, "1"))
	must(t, s.Add(newWhole(ownerA, "two", "2")))
	must(t, s.Update(newWhole(ownerB, "one", "3")))
	for _, name := range []string{"one", "two"} {
		must(t, s.Delete(newWhole(ownerA, name, "4")))
	}
	if len(s.index.objects) != 0 || s.index.bytes != 0 {
		t.Errorf("%d keys, %d bytes", len(s.index.objects), s.index.bytes)
	}
}
