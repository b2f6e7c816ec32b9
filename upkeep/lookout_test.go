// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// lookoutWorld is a target that contains one ConfigMap. If a lookout sees a change of this ConfigMap, the channel
// `changed` receives a value.
type lookoutWorld struct {
	*testing.T
	client  *fake.FakeMetadataClient
	all     *clusters
	sight   Sight
	changed chan struct{}
}

func newLookoutWorld(t *testing.T) *lookoutWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cm := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm", UID: "u", ResourceVersion: "1"}}
	cm.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	w := &lookoutWorld{T: t, client: fake.NewSimpleMetadataClient(scheme, cm), changed: make(chan struct{}, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	w.all = &clusters{ctx: ctx}
	t.Cleanup(func() { cancel(); w.all.running.Wait() })
	w.sight = SightOfAll(&Cluster{metadata: w.client}, configMaps, nil, nil).In("ns")
	w.sight.seen = versions([]metav1.Object{cm})
	return w
}

func (w *lookoutWorld) lookOut() *lookout {
	return w.all.lookOut([]Sight{w.sight}, func() { w.changed <- struct{}{} })
}

// isTold waits until a change is reported.
func (w *lookoutWorld) isTold() {
	w.Helper()
	select {
	case <-w.changed:
	case <-time.After(30 * time.Second):
		w.Error("nobody was told")
	}
}

// untilWatched waits until all Sights of the lookout are watched.
func (w *lookoutWorld) untilWatched(l *lookout) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return l.watched.Load() > 0, nil
	})
	if err != nil {
		w.Fatal("not watched")
	}
}

func TestLookout(t *testing.T) {
	t.Run("tells of a change once, and is over", func(t *testing.T) {
		w := newLookoutWorld(t)
		l := w.lookOut()
		w.untilWatched(l)
		if len(w.changed) > 0 {
			t.Error("told of nothing")
		}
		if err := w.client.Resource(configMaps).Namespace("ns").Delete(t.Context(), "cm", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.isTold()
		w.all.running.Wait()
		if !l.over.Load() || len(w.changed) > 0 {
			t.Error("it goes on")
		}
	})
	t.Run("tells of a change between the look and the watch", func(t *testing.T) {
		w := newLookoutWorld(t)
		w.sight.seen = "u 0"
		w.lookOut()
		w.isTold()
	})
	t.Run("is never watched where that is forbidden", func(t *testing.T) {
		w := newLookoutWorld(t)
		w.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		l := w.lookOut()
		w.all.running.Wait()
		if l.watched.Load() != 0 || len(w.changed) > 0 {
			t.Error("watched or told")
		}
	})
	t.Run("goes on while the item waits for the same", func(t *testing.T) {
		w := newLookoutWorld(t)
		it, begun := &item{}, 0
		look := func(what string) bool {
			return it.lookOut(what, func() *lookout { begun++; return w.lookOut() })
		}
		if look("a") {
			t.Error("watched before it began")
		}
		w.untilWatched(it.lookout)
		if !look("a") || begun != 1 {
			t.Error("began anew for the same")
		}
		if look("b") || begun != 2 {
			t.Error("did not begin for another")
		}
		it.stopLooking()
		w.all.running.Wait()
	})
}
