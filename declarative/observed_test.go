// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	anna       = ownership.Owner{UID: "anna", Landscape: "land", Namespace: "ns", Name: "a"}
	bert       = ownership.Owner{UID: "bert", Landscape: "land", Namespace: "ns", Name: "b"}
)

// fakeObserver is an observer of a fake cluster.
type fakeObserver struct {
	*observer

	client *dynamicfake.FakeDynamicClient
	clock  *clocktesting.FakeClock
	open   atomic.Int32

	mu    sync.Mutex
	woken map[types.UID]int
}

// observe makes an observer that ends with the test. forbidden lists the namespaces that it may not list, where ""
// means the whole cluster.
func observe(t *testing.T, forbidden []string, objects ...runtime.Object) *fakeObserver {
	t.Helper()
	o := &fakeObserver{woken: map[types.UID]int{}, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	o.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"}, objects...)
	o.client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, namespace := range forbidden {
			if namespace == action.GetNamespace() {
				return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "", nil)
			}
		}
		return false, nil, nil
	})
	o.observer = newObserver(o.client, o.clock, &o.open)
	o.changed = func(item types.UID) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.woken[item]++
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	o.spawn = func(f func(context.Context)) bool {
		running.Go(func() { f(ctx) })
		return true
	}
	t.Cleanup(func() {
		end()
		running.Wait()
		if n := o.open.Load(); n != 0 {
			t.Errorf("%d informers are left", n)
		}
	})
	return o
}

func (o *fakeObserver) wokenUp(item types.UID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.woken[item]
}

// child returns a ConfigMap of an item.
func child(owner ownership.Owner, namespace, name, version string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("v1")
	out.SetKind("ConfigMap")
	out.SetNamespace(namespace)
	out.SetName(name)
	out.SetUID(types.UID(namespace + name))
	out.SetResourceVersion(version)
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
	owner.Stamp(out)
	return out
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatal(what)
	}
}

func namesOf(objects []*unstructured.Unstructured) string {
	out := []string{}
	for _, obj := range objects {
		out = append(out, obj.GetNamespace()+"/"+obj.GetName())
	}
	return strings.Join(out, " ")
}

func TestViewGoesDownTheLadder(t *testing.T) {
	cases := map[string]struct {
		reason    string
		forbidden []string
		covers    map[string]bool
		sees      string
		missing   string
	}{
		"Cluster":    {"everything", nil, map[string]bool{"x": true, "y": true, "": true}, "x/one", ""},
		"Namespaces": {"only what is asked for", []string{""}, map[string]bool{"x": true, "y": true, "z": false}, "x/one", ""},
		"One":        {"what is allowed of it", []string{"", "y"}, map[string]bool{"x": true, "y": false}, "x/one", "in namespace y"},
		"None":       {"nothing", []string{"", "x", "y"}, map[string]bool{"x": false, "y": false}, "", "in namespace y"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, tc.forbidden, child(anna, "x", "one", "5"), child(bert, "y", "two", "6"))
			v, err := o.view(t.Context(), configMaps, []string{"x", "y"})
			if err != nil {
				t.Fatal(err)
			}
			for namespace, want := range tc.covers {
				if got := v.covers(namespace); got != want {
					t.Errorf("%s: covers(%q) = %t, want %t", tc.reason, namespace, got, want)
				}
			}
			if got := namesOf(v.of(anna)); got != tc.sees {
				t.Errorf("of anna: %q, want %q", got, tc.sees)
			}
			if !strings.Contains(v.reason, tc.missing) || (v.reason == "") != (tc.missing == "") {
				t.Errorf("reason %q, want it to name %q", v.reason, tc.missing)
			}
		})
	}
}

func TestViewRemembersARefusalForAWhile(t *testing.T) {
	o := observe(t, []string{""})
	for range 3 {
		if v, err := o.view(t.Context(), configMaps, nil); err != nil || v.reason == "" {
			t.Fatalf("view: %v, %v", v, err)
		}
	}
	if got := len(o.client.Actions()); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
	o.clock.Step(retryRefused)
	if _, err := o.view(t.Context(), configMaps, nil); err != nil {
		t.Fatal(err)
	}
	if got := len(o.client.Actions()); got != 2 {
		t.Errorf("%d requests after a while, want 2", got)
	}
}

func TestViewDropsManagedFields(t *testing.T) {
	o := observe(t, nil, child(anna, "x", "one", "5"))
	v, err := o.view(t.Context(), configMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range v.of(anna) {
		if obj.GetManagedFields() != nil {
			t.Error("managedFields are kept")
		}
	}
}

func TestViewFindsWhatAnEarlierLifeOfTheItemHad(t *testing.T) {
	again := anna
	again.UID = "anna-2"
	o := observe(t, nil, child(anna, "x", "one", "5"), child(again, "x", "two", "6"))
	v, err := o.view(t.Context(), configMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(v.of(again)); got != "x/two x/one" {
		t.Errorf("of the item: %q", got)
	}
	t.Run("also under another identity of the cluster [F58]", func(t *testing.T) {
		known := again
		known.Landscape, known.Alias = "9c02", anna.Landscape
		if got := namesOf(v.of(known)); got != "x/two x/one" {
			t.Errorf("of the item: %q", got)
		}
	})
}

func TestChangesWakeExactlyTheirItem(t *testing.T) {
	o := observe(t, nil, child(anna, "x", "one", "5"))
	v, err := o.view(t.Context(), configMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first list does not wake", func() bool { return o.wokenUp(anna.UID) == 1 })
	resource := o.client.Resource(configMaps).Namespace("x")
	if _, err := resource.Create(t.Context(), child(bert, "x", "two", "6"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new object does not wake", func() bool { return o.wokenUp(bert.UID) == 1 })
	if _, err := resource.Update(t.Context(), child(bert, "x", "one", "7"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a change of hands does not wake both", func() bool { return o.wokenUp(anna.UID) == 2 && o.wokenUp(bert.UID) == 2 })
	if err := resource.Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deletion does not wake", func() bool { return o.wokenUp(bert.UID) == 3 })
	if o.wokenUp(anna.UID) != 2 {
		t.Error("it woke another item as well")
	}
	if seen := v.in("x"); !seen.reached("7") || seen.reached("8") || seen.get("x", "two") != nil || seen.get("x", "one") == nil {
		t.Error("the store is not what was seen")
	}
}

func TestNoMoreInformersThanTheLimit(t *testing.T) {
	o := observe(t, nil)
	o.open.Store(maxObservations)
	v, err := o.view(t.Context(), configMaps, []string{"x"})
	if err != nil || v.covers("x") || !strings.Contains(v.reason, "limit") {
		t.Errorf("view: %+v, %v", v, err)
	}
	o.open.Store(0)
}

func TestSupersededInformersEnd(t *testing.T) {
	forbidden := []string{""}
	o := observe(t, nil)
	o.client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == forbidden[0] {
			return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "", nil)
		}
		return false, nil, nil
	})
	if v, err := o.view(t.Context(), configMaps, []string{"x"}); err != nil || !v.covers("x") || v.whole != nil {
		t.Fatalf("view: %+v, %v", v, err)
	}
	forbidden[0] = "none"
	o.clock.Step(retryRefused)
	if v, err := o.view(t.Context(), configMaps, []string{"x"}); err != nil || v.whole == nil {
		t.Fatalf("view after the right was given: %+v, %v", v, err)
	}
	o.observer.mu.Lock()
	defer o.observer.mu.Unlock()
	o.collect(o.clock.Now())
	if len(o.observed) != 1 {
		t.Errorf("%d informers, want 1", len(o.observed))
	}
}
