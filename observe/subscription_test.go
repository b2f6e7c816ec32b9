// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
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
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// subscriber is a Watcher of a cluster that contains ConfigMaps without an owner label.
type subscriber struct {
	*testing.T
	*Watcher
	client *fake.FakeMetadataClient
	calls  atomic.Int32 // the number of reported changes
}

func newSubscriber(t *testing.T, objects ...runtime.Object) *subscriber {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &subscriber{T: t, client: fake.NewSimpleMetadataClient(scheme, objects...)}
	w.Watcher = New(w.client, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	w.Start(ctx)
	t.Cleanup(func() { cancel(); w.Wait() })
	return w
}

// request selects the ConfigMap with the given name or, if the name is empty, the ConfigMaps with the label a=b.
func (w *subscriber) request(name string, found ...*unstructured.Unstructured) WatchRequest {
	if name == "" {
		return w.ForLabels(configMaps, map[string]string{"a": "b"}, found).InNamespace("ns")
	}
	return w.ForObject(configMaps, types.NamespacedName{Namespace: "ns", Name: name}, append(found, nil)[0])
}

// startSubscription subscribes to what request selects.
func (w *subscriber) startSubscription(name string) *Subscription {
	return w.request(name).Subscribe(func() { w.calls.Add(1) })
}

// waitUntil waits until the function `done` returns true.
func (w *subscriber) waitUntil(what string, done func() bool) {
	w.Helper()
	if wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done(), nil }) != nil {
		w.Fatalf("not in time: %s", what)
	}
}

// newRead returns a list of one ConfigMap with the given resource version, or nil if the version is empty.
func newRead(name, version string) []*unstructured.Unstructured {
	if version == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetResourceVersion(version)
	return []*unstructured.Unstructured{obj}
}

// newMetadata returns the metadata of a ConfigMap that a watch reports.
func newMetadata(name, version, label string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version, Labels: map[string]string{"a": label}},
	}
}

// listNamespaces returns the namespaces in which watches were opened.
func (w *subscriber) listNamespaces() (namespaces []string) {
	for _, action := range w.client.Actions() {
		if action.GetVerb() == "watch" {
			namespaces = append(namespaces, action.GetNamespace())
		}
	}
	return namespaces
}

func TestSubscribe(t *testing.T) {
	t.Run("subscriptions of one kind share one watch, which ends with the last of them [F36]", func(t *testing.T) {
		w := newSubscriber(t)
		var all []*Subscription
		for i := range 20 {
			f := w.startSubscription(fmt.Sprintf("cm-%d", i%2))
			f.SetBaseline(nil)
			all = append(all, f, w.startSubscription(""))
			all[2*i+1].SetBaseline(nil)
		}
		w.waitUntil("watched", all[0].IsCurrent)
		cm := newMetadata("cm-0", "5", "x")
		if err := w.client.Tracker().Create(configMaps, cm, "ns"); err != nil {
			t.Fatal(err)
		}
		w.waitUntil("each subscription to the name reports the change", func() bool { return w.calls.Load() == 10 })
		for _, f := range all {
			f.Stop()
		}
		w.waitUntil("the watch is over", func() bool {
			return w.GetStats().Watches == 0
		})
		if got := w.listNamespaces(); len(got) != 1 || got[0] != "" {
			t.Errorf("watches in %q", got)
		}
	})
	t.Run("a subscription watches the namespace if the whole cluster is refused, or only its objects [F36]", func(t *testing.T) {
		for _, allowed := range []string{"ns", "none"} {
			w := newSubscriber(t)
			w.client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				list, _ := action.(clienttesting.ListAction)
				if action.GetNamespace() == allowed || !list.GetListRestrictions().Fields.Empty() {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
			})
			f := w.startSubscription("cm")
			f.SetBaseline(nil)
			w.waitUntil("watched", func() bool { return len(w.listNamespaces()) > 0 })
			if err := w.client.Tracker().Create(configMaps, newMetadata("cm", "5", "x"), "ns"); err != nil {
				t.Fatal(err)
			}
			w.waitUntil("the change is reported", func() bool { return w.calls.Load() == 1 })
			if got := w.listNamespaces(); len(got) != 1 || got[0] != "ns" {
				t.Errorf("%s: watches in %q", allowed, got)
			}
			if f.IsCurrent() {
				t.Error("current after a change")
			}
			f.Stop()
		}
	})
}

func TestSubscriptionWithoutAWatch(t *testing.T) {
	t.Run("a subscription is not current while its watch is interrupted [F36]", func(t *testing.T) {
		w := newSubscriber(t)
		var broken atomic.Bool
		broken.Store(true)
		w.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			return broken.Load(), nil, errors.New("no connection")
		})
		f := w.startSubscription("cm")
		f.SetBaseline(nil)
		w.waitUntil("a second try", func() bool { return len(w.listNamespaces()) > 1 })
		if f.IsCurrent() {
			t.Error("current without a watch")
		}
		broken.Store(false)
		w.waitUntil("watched", f.IsCurrent)
		f.Stop()
		if f.IsCurrent() {
			t.Error("current after its end")
		}
	})
}

func TestSubscriptionComparesEvents(t *testing.T) {
	type event struct {
		version, label string
		gone           bool
	}
	for name, test := range map[string]struct {
		byLabel bool
		before  []event  // the events before the read
		list    []string // versions of the object in a list at version 7, before the read; nil if there is no list
		read    string   // the version of the object that was read; empty if the object does not exist
		after   []event  // the events after the read
		want    bool
	}{
		"nothing happens":                            {read: "5"},
		"the event of what was read":                 {read: "5", after: []event{{version: "5", label: "b"}}},
		"an older event":                             {read: "5", after: []event{{version: "4", label: "b"}}},
		"a newer version":                            {read: "5", after: []event{{version: "6", label: "b"}}, want: true},
		"it is created":                              {after: []event{{version: "6", label: "b"}}, want: true},
		"it is deleted":                              {read: "5", after: []event{{version: "6", label: "b", gone: true}}, want: true},
		"an older object was deleted":                {read: "5", after: []event{{version: "4", label: "b", gone: true}}},
		"the deletion of what was not found":         {after: []event{{version: "6", label: "b", gone: true}}},
		"it loses the label":                         {byLabel: true, read: "5", after: []event{{version: "6", label: "x"}}, want: true},
		"another label where the name counts":        {read: "5", after: []event{{version: "5", label: "x"}}},
		"an object without the label":                {byLabel: true, after: []event{{version: "6", label: "x"}}},
		"a change that the read has seen":            {before: []event{{version: "5", label: "b"}}, read: "5"},
		"a change that the read has not seen":        {before: []event{{version: "6", label: "b"}}, read: "5", want: true},
		"a loss of the label before the read is out": {byLabel: true, before: []event{{version: "6", label: "x"}}, read: "5", want: true},
		"a deletion that the read has not seen":      {before: []event{{version: "6", label: "b", gone: true}}, read: "5", want: true},
		"a list with what was read":                  {list: []string{"5"}, read: "5"},
		"a list with a newer version":                {list: []string{"6"}, read: "5", want: true},
		"a list without what was read":               {list: []string{}, read: "5", want: true},
		"a list from before what was read":           {list: []string{}, read: "8"},
		"a list with what was not found":             {list: []string{"6"}, want: true},
	} {
		t.Run(name+" [F36]", func(t *testing.T) {
			reported := 0
			w := newSubscriber(t)
			name := "cm"
			if test.byLabel {
				name = ""
			}
			f := newSubscription(w.request(name), func() { reported++ })
			list := func() {
				var objects []*metav1.PartialObjectMetadata
				for _, version := range test.list {
					objects = append(objects, newMetadata("cm", version, "b"))
				}
				f.observeAll(objects, "7")
			}
			for _, e := range test.before {
				f.observe(newMetadata("cm", e.version, e.label), e.gone)
			}
			if test.list != nil {
				list()
			}
			f.SetBaseline(newRead("cm", test.read))
			for _, e := range test.after {
				f.observe(newMetadata("cm", e.version, e.label), e.gone)
			}
			if test.list != nil { // the same must hold after the read
				list()
			}
			if want := map[bool]int{true: 1}[test.want]; reported != want {
				t.Errorf("reported %d changes, want %d", reported, want)
			}
		})
	}
	t.Run("a subscription reports a change if there were more events than it stores [F36]", func(t *testing.T) {
		var reported atomic.Bool
		f := newSubscription(newSubscriber(t).ForLabels(configMaps, map[string]string{"a": "b"}, nil), func() { reported.Store(true) })
		for i := range maxEarlyEvents + 1 {
			f.observe(newMetadata(fmt.Sprint(i), "1", "x"), false)
		}
		if f.SetBaseline(nil); !reported.Load() || len(f.earlyEvents.last) > maxEarlyEvents {
			t.Error("events are lost")
		}
	})
}

func TestSubscribeAloneReportsTheFirstChange(t *testing.T) {
	cm := newMetadata("cm", "1", "b")
	t.Run("a subscription reports one change", func(t *testing.T) {
		w := newSubscriber(t, cm)
		s := w.request("cm", newRead("cm", "1")...).SubscribeAlone(func() { w.calls.Add(1) })
		w.waitUntil("the subscription is current", s.IsCurrent)
		if w.calls.Load() > 0 || s.HasEnded() {
			t.Error("a change is reported although there is none")
		}
		if err := w.client.Resource(configMaps).Namespace("ns").Delete(t.Context(), "cm", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.waitUntil("the change is reported", func() bool { return w.calls.Load() == 1 })
		if !s.HasEnded() || s.IsCurrent() {
			t.Error("the subscription goes on after the change")
		}
		s.Stop()
		w.waitUntil("the watch has ended", func() bool { return w.GetStats().Watches == 0 })
	})
	t.Run("a subscription reports a change between the read and the watch", func(t *testing.T) {
		w := newSubscriber(t, cm)
		w.request("cm", newRead("cm", "0")...).SubscribeAlone(func() { w.calls.Add(1) })
		w.waitUntil("the change is reported", func() bool { return w.calls.Load() == 1 })
	})
	t.Run("a subscription neither watches nor polls if the cluster forbids the watch", func(t *testing.T) {
		w := newSubscriber(t, cm)
		w.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
		})
		s := w.request("cm", newRead("cm", "1")...).SubscribeAlone(func() { w.calls.Add(1) })
		w.waitUntil("the watch has ended", func() bool { return w.GetStats().Watches == 0 })
		if s.IsCurrent() || w.calls.Load() > 0 || len(w.client.Actions()) != 1 {
			t.Errorf("current %t, %d changes, requests %v", s.IsCurrent(), w.calls.Load(), w.client.Actions())
		}
	})
	t.Run("a subscription lists the objects at intervals if the cluster forbids to watch them [F36]", func(t *testing.T) {
		w := newSubscriber(t, cm)
		clk := clocktesting.NewFakeClock(startTime)
		w.opts.Clock = clk
		w.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
		})
		s := w.startSubscription("cm")
		s.SetBaseline(newRead("cm", "1"))
		w.waitUntil("the first list", clk.HasWaiters)
		if err := w.client.Tracker().Update(configMaps, newMetadata("cm", "2", "b"), "ns"); err != nil {
			t.Fatal(err)
		}
		clk.Step(pollInterval)
		w.waitUntil("the change is reported", func() bool { return w.calls.Load() == 1 })
		s.Stop()
	})
}
