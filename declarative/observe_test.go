// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	listKinds  = map[schema.GroupVersionResource]string{configMaps: "ConfigMapList", secrets: "SecretList"}
	anna       = ownership.Owner{UID: "anna", Landscape: "land", Namespace: "ns", Name: "a"}
	bert       = ownership.Owner{UID: "bert", Landscape: "land", Namespace: "ns", Name: "b"}
)

// newWatchedRun returns a run of the item anna. The target of the run is a fake cluster with the given objects. The map
// `written` contains the resource version after the item's last write of each object, by the name of the object.
func newWatchedRun(t *testing.T, written map[string]string, objects ...runtime.Object) (*run, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, objects...)
	watcher := observe.New(nil, observe.Options{DynamicClient: client})
	watcher.Start(t.Context())
	t.Cleanup(watcher.Wait)
	if c, err := watcher.WatchObjects(t.Context(), configMaps); err != nil || !c.IsComplete() {
		t.Fatalf("watch: %+v, %v", c, err)
	}
	var expected []observe.BaselineObject
	for name, version := range written {
		object := observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "x", Name: name}}
		expected = append(expected, observe.BaselineObject{Object: object, ResourceVersion: version})
	}
	watcher.SetBaseline(anna.UID, expected)
	r := &run{item: item("a"), watcher: watcher, memory: &memory{}, managed: &managed.Run{Owner: anna}, unobserved: map[schema.GroupKind]bool{}}
	r.item.UID = anna.UID
	return r, client
}

// newChild returns a ConfigMap of an item.
func newChild(owner ownership.Owner, namespace, name, version string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("v1")
	out.SetKind("ConfigMap")
	out.SetNamespace(namespace)
	out.SetName(name)
	out.SetUID(types.UID(namespace + name))
	out.SetResourceVersion(version)
	owner.Mark(out)
	return out
}

func newEntry(name string) apply.Entry {
	return apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: name, UID: types.UID("x" + name)}
}

func TestObserveIgnoresVersionsBeforeOwnWrite(t *testing.T) {
	cases := map[string]struct {
		reason  string
		name    string
		written string
		sure    bool
	}{
		"object without a write":                    {"the watch has it", "one", "", true},
		"object in the version of the write":        {"the watch has seen our write", "one", "5", true},
		"object in an older version than the write": {"the watch lags", "one", "9", false},
		"missing object that was written before":    {"it may only have lost its mark", "missing", "6", false},
		"missing object that was just created":      {"the watch has not seen our write, which made it", "missing", "9", false},
		"missing object whose write is unknown":     {"the version of our write is unknown", "missing", "", false},
		"object that belongs to another item":       {"its mark is that of another item now", "theirs", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newWatchedRun(t, map[string]string{tc.name: tc.written}, newChild(anna, "x", "one", "5"), newChild(bert, "x", "theirs", "7"))
			if sure := r.getWatched(t.Context(), configMaps, newEntry(tc.name)) != nil; sure != tc.sure {
				t.Errorf("%s: sure %t; want %t", tc.reason, sure, tc.sure)
			}
		})
	}
}

func TestObserveWaitsForLaggingWatch(t *testing.T) {
	r, client := newWatchedRun(t, map[string]string{"one": "6"}, newChild(anna, "x", "one", "5"))
	waitUntil(t, "the watch begins", func() bool { // the fake cluster loses events from before the watch
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" })
	})
	late := time.AfterFunc(20*time.Millisecond, func() {
		_, err := client.Resource(configMaps).Namespace("x").Update(t.Context(), newChild(anna, "x", "one", "6"), metav1.UpdateOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	defer late.Stop()
	if obj := r.getWatched(t.Context(), configMaps, newEntry("one")); obj == nil || obj.GetResourceVersion() != "6" {
		t.Errorf("seen %v; want what was written", obj)
	}
}

func TestObserveFindsChildrenOfRecreatedItem(t *testing.T) {
	earlier := anna
	earlier.UID = "anna-1"
	r, _ := newWatchedRun(t, nil, newChild(anna, "x", "two", "6"), newChild(earlier, "x", "one", "5"), newChild(bert, "x", "theirs", "7"))
	r.deployer = &deployer{}
	found, err := r.listKind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMaps, nil)
	if err != nil || len(found) != 2 || found[0].GetName() != "one" || found[1].GetName() != "two" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestNamespacesThatMayContainChildren(t *testing.T) {
	cases := map[string]struct {
		reason  string
		allowed []string
		want    []string
	}{
		"no list of namespaces":       {"the item's own", nil, []string{"ns", "x"}},
		"an empty list of namespaces": {"the item's own", []string{}, []string{"ns", "x"}},
		"a list of namespaces":        {"those that are allowed", []string{"a", "b"}, []string{"a", "b", "x"}},
		"AnyNamespace":                {"only where it has some", []string{AnyNamespace}, []string{"x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Namespaces: tc.allowed}
			if diff := cmp.Diff(tc.want, o.listSearchNamespaces(item("a"), []apply.Entry{newEntry("one"), {Name: "cluster-scoped"}})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEntriesMatchAnyVersionOfKind(t *testing.T) {
	old := apply.Entry{APIVersion: "extensions/v1beta1", Kind: "Deployment", Name: "a"}
	other := apply.Entry{APIVersion: "extensions/v1", Kind: "Deployment", Name: "b"}
	r := &run{managed: &managed.Run{Inventory: apply.Inventory{Entries: []apply.Entry{old, newEntry("one"), other}}}}
	if diff := cmp.Diff([]apply.Entry{old, other}, filterEntries(r.managed.Inventory, old.Ref().GVK().GroupKind())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUnobservedKindsArePolled checks that a kind need not be observed if the target does not serve it.
func TestUnobservedKindsArePolled(t *testing.T) {
	for name, tc := range map[string]struct {
		unobserved schema.GroupKind
		want       time.Duration
	}{
		"a kind of a child that cannot be observed is polled [F30]": {schema.GroupKind{Kind: "ConfigMap"}, pollPartly},
		"a kind without children is not polled [F30]":               {schema.GroupKind{Kind: "Secret"}, pollObserved},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{deployer: &deployer{}, unobserved: map[schema.GroupKind]bool{tc.unobserved: true}, managed: &managed.Run{Inventory: apply.Inventory{Entries: []apply.Entry{newEntry("one")}}}}
			if got := r.newSchedule(&SyncResponse{}).poll(); got != tc.want {
				t.Errorf("looks again after %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("only a kind that the target refuses is unobserved [F30]", func(t *testing.T) {
		r, client := newWatchedRun(t, nil)
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(secrets.GroupResource(), "", nil)
		})
		r.deployer = &deployer{}
		for kind, resource := range map[string]schema.GroupVersionResource{"ConfigMap": configMaps, "Secret": secrets} {
			if _, err := r.listKind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: kind}, resource, nil); err != nil {
				t.Fatal(err)
			}
		}
		if r.unobserved[schema.GroupKind{Kind: "ConfigMap"}] || !r.unobserved[schema.GroupKind{Kind: "Secret"}] {
			t.Errorf("unobserved kinds = %v, want Secret only", r.unobserved)
		}
	})
}
