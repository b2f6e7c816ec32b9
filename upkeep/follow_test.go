// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply"
)

// follows is a world whose Followers watch ConfigMaps that do not belong to the item.
type follows struct {
	*world
	client *fake.FakeMetadataClient
	told   atomic.Int32
}

func newFollows(t *testing.T) *follows {
	w := &follows{world: newWorld(t)}
	w.client = w.cluster.metadata.(*fake.FakeMetadataClient)
	return w
}

// follow starts to follow the ConfigMap with the given name or, if the name is empty, the ConfigMaps with the label
// a=b.
func (w *follows) follow(name string) *Follower {
	if name == "" {
		return w.keeper.Follow(SightOfAll(w.cluster, configMaps, map[string]string{"a": "b"}, nil).In("ns"), func() { w.told.Add(1) })
	}
	return w.keeper.Follow(SightOf(w.cluster, configMaps, apply.Ref{Namespace: "ns", Name: name}, nil), func() { w.told.Add(1) })
}

// object returns a list of one ConfigMap with the given resource version, or nil if the version is empty.
func object(name, version string) []*unstructured.Unstructured {
	if version == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetResourceVersion(version)
	return []*unstructured.Unstructured{obj}
}

// metadataOf returns the metadata of a ConfigMap that a watch reports.
func metadataOf(name, version, label string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version, Labels: map[string]string{"a": label}},
	}
}

// watched returns the namespaces in which watches were opened.
func (w *follows) watched() (namespaces []string) {
	for _, action := range w.client.Actions() {
		if action.GetVerb() == "watch" {
			namespaces = append(namespaces, action.GetNamespace())
		}
	}
	return namespaces
}

func TestFollow(t *testing.T) {
	t.Run("opens one watch for all that is followed of a kind, and ends it with the last follower [F36]", func(t *testing.T) {
		w := newFollows(t)
		var all []*Follower
		for i := range 20 {
			f := w.follow(fmt.Sprintf("cm-%d", i%2))
			f.Saw(nil)
			all = append(all, f, w.follow(""))
			all[2*i+1].Saw(nil)
		}
		w.until("watched", all[0].Holds)
		cm := metadataOf("cm-0", "5", "x")
		if err := w.client.Tracker().Create(configMaps, cm, "ns"); err != nil {
			t.Fatal(err)
		}
		w.until("each follower of the name is told", func() bool { return w.told.Load() == 10 })
		for _, f := range all {
			f.Stop()
		}
		w.until("the watch is over", func() bool {
			w.keeper.clusters.kinds.mu.Lock()
			defer w.keeper.clusters.kinds.mu.Unlock()
			return len(w.keeper.clusters.kinds.watches) == 0
		})
		if got := w.watched(); len(got) != 1 || got[0] != "" {
			t.Errorf("watches in %q", got)
		}
	})
	t.Run("goes on in the namespace where the whole cluster is refused, else alone [F36]", func(t *testing.T) {
		for _, allowed := range []string{"ns", "none"} {
			w := newFollows(t)
			w.client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				list, _ := action.(clienttesting.ListAction)
				if action.GetNamespace() == allowed || !list.GetListRestrictions().Fields.Empty() {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
			})
			f := w.follow("cm")
			f.Saw(nil)
			w.until("watched", func() bool { return len(w.watched()) > 0 })
			if err := w.client.Tracker().Create(configMaps, metadataOf("cm", "5", "x"), "ns"); err != nil {
				t.Fatal(err)
			}
			w.until("told", func() bool { return w.told.Load() == 1 })
			if got := w.watched(); len(got) != 1 || got[0] != "ns" {
				t.Errorf("%s: watches in %q", allowed, got)
			}
			if f.Holds() {
				t.Error("holds after a change")
			}
			f.Stop()
		}
	})
}

func TestFollowInterrupted(t *testing.T) {
	t.Run("nothing is believed while the watch is interrupted [F36]", func(t *testing.T) {
		w := newFollows(t)
		var broken atomic.Bool
		broken.Store(true)
		w.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			return broken.Load(), nil, errors.New("no connection")
		})
		f := w.follow("cm")
		f.Saw(nil)
		w.until("a second try", func() bool { return len(w.watched()) > 1 })
		if f.Holds() {
			t.Error("holds without a watch")
		}
		broken.Store(false)
		w.until("watched", f.Holds)
		f.Stop()
		if f.Holds() {
			t.Error("holds after its end")
		}
	})
}

func TestFollowerEvents(t *testing.T) {
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
			told := 0
			f := &Follower{changed: func() { told++ }, early: earlyEvents{last: map[types.NamespacedName]objectEvent{}}}
			f.sight = SightOf(nil, configMaps, apply.Ref{Namespace: "ns", Name: "cm"}, nil)
			if test.byLabel {
				f.sight = SightOfAll(nil, configMaps, map[string]string{"a": "b"}, nil).In("ns")
			}
			f.watch.Store(&kindWatch{})
			list := func() {
				var objects []*metav1.PartialObjectMetadata
				for _, version := range test.list {
					objects = append(objects, metadataOf("cm", version, "b"))
				}
				f.sawAll(objects, "7")
			}
			for _, e := range test.before {
				f.saw(metadataOf("cm", e.version, e.label), e.gone)
			}
			if test.list != nil {
				list()
			}
			f.Saw(object("cm", test.read))
			for _, e := range test.after {
				f.saw(metadataOf("cm", e.version, e.label), e.gone)
			}
			if test.list != nil { // the same must hold after the read
				list()
			}
			if want := map[bool]int{true: 1}[test.want]; told != want {
				t.Errorf("told %d times, want %d", told, want)
			}
		})
	}
	t.Run("more events than are kept [F36]", func(t *testing.T) {
		var told atomic.Bool
		f := &Follower{changed: func() { told.Store(true) }, early: earlyEvents{last: map[types.NamespacedName]objectEvent{}}}
		f.sight = SightOfAll(nil, configMaps, map[string]string{"a": "b"}, nil)
		f.watch.Store(&kindWatch{})
		for i := range maxEarly + 1 {
			f.saw(metadataOf(fmt.Sprint(i), "1", "x"), false)
		}
		if f.Saw(nil); !told.Load() || len(f.early.last) > maxEarly {
			t.Error("events are lost")
		}
	})
}
