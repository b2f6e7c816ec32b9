// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// isOpen reports whether the next run would get the cluster.
func (w *world) isOpen() bool {
	w.keeper.clusters.mu.Lock()
	defer w.keeper.clusters.mu.Unlock()
	return w.keeper.clusters.open[w.cluster.Client] == w.cluster
}

// check advances the clock so that the next idle check takes place.
func (w *world) check() {
	w.Helper()
	w.until("the idle check waits", w.clock.HasWaiters)
	w.clock.Step(idleCheck)
}

// use sets the time at which the cluster was last requested.
func (w *world) use(at time.Time) {
	w.keeper.clusters.mu.Lock()
	defer w.keeper.clusters.mu.Unlock()
	w.cluster.used = at
}

// isReleased waits until the cluster has ended.
func (w *world) isReleased() {
	w.Helper()
	select {
	case <-w.released:
	case <-time.After(30 * time.Second):
		w.Fatal("the cluster was not released")
	}
	if w.isOpen() || w.cluster.Go(func(context.Context) {}) || w.cluster.Keep("other") {
		w.Error("the cluster goes on")
	}
}

func TestIdleClusters(t *testing.T) {
	watched := []observe.Owned{{Object: observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cm"}}, UID: "u"}}
	t.Run("are closed", func(t *testing.T) {
		w := newWorld(t)
		w.check()
		w.isReleased()
	})
	for name, use := range map[string]struct{ begin, end func(*world) }{
		"nothing of the watches": {
			func(w *world) { w.cluster.Watcher().SetBaseline(w.item.UID, watched) }, func(w *world) { w.cluster.Watcher().Forget(w.item.UID) },
		},
		"Keep": {
			func(w *world) { w.cluster.Keep(w.item.UID) }, func(w *world) { w.cluster.Release(w.item.UID) },
		},
		"Keep, and forgotten": {
			func(w *world) { w.cluster.Keep(w.item.UID) }, func(w *world) { w.keeper.Forget(w.item.UID) },
		},
		"a run that just began": {
			func(w *world) { w.use(noon) }, func(w *world) { w.use(time.Time{}) },
		},
	} {
		t.Run("stay open for "+name, func(t *testing.T) {
			w := newWorld(t)
			w.use(time.Time{})
			use.begin(w)
			if w.keeper.clusters.close(w.cluster, true) || !w.isOpen() {
				t.Fatal("closed although somebody needs it")
			}
			use.end(w)
			w.check()
			w.isReleased()
		})
	}
}

func TestClusterEnds(t *testing.T) {
	for name, end := range map[string]func(*world){
		"with the manager":              func(w *world) { w.stop() },
		"when its client left the pool": func(w *world) { close(w.ended) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ran := make(chan struct{})
			if !w.cluster.Go(func(ctx context.Context) { <-ctx.Done(); close(ran) }) {
				t.Fatal("an open cluster runs nothing")
			}
			end(w)
			w.isReleased()
			select {
			case <-ran:
			default:
				t.Error("released before the goroutine ended")
			}
		})
	}
}

// TestSweep covers items for whose deletion Delete is not called, because they have the annotation
// delete-without-uninstall.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	w.begin(true)
	w.cluster.Keep(w.item.UID)
	w.cluster.Watcher().SetBaseline(w.item.UID, nil)
	anew := w.item.DeepCopy()
	anew.UID, anew.Name = "earlier", "item" // an earlier item that had the name of the current item
	w.keeper.items.get(anew)
	ctx, cancel := context.WithCancel(t.Context())
	w.keeper.clusters.running.Go(func() { w.keeper.clusters.sweep(ctx) })
	t.Cleanup(cancel)
	known := func() (here, earlier bool) {
		keys := w.keeper.items.keys()
		_, here = keys[w.item.UID]
		_, earlier = keys[anew.UID]
		return here, earlier
	}
	w.until("the sweep waits", func() bool { return w.clock.Waiters() >= 2 })
	w.clock.Step(sweepEvery)
	w.until("the earlier one is forgotten", func() bool { _, earlier := known(); return !earlier })
	if here, _ := known(); !here || w.cluster.Watcher().Stats().Items != 1 {
		t.Error("an item that is there was forgotten")
	}
	if err := w.items.Delete(t.Context(), &lsv1alpha1.DeployItem{ObjectMeta: w.item.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(sweepEvery)
	w.until("the item is forgotten", func() bool { here, _ := known(); return !here })
	w.keeper.clusters.mu.Lock()
	defer w.keeper.clusters.mu.Unlock()
	if w.cluster.Watcher().Stats().Items != 0 || len(w.cluster.users) != 0 {
		t.Error("its targets still know the item")
	}
}

func TestValue(t *testing.T) {
	type key struct{}
	w := newWorld(t)
	made := 0
	create := func() any { made++; return &remembered{} }
	first := w.begin(true).Value(key{}, create)
	if w.begin(false).Value(key{}, create) != first || made != 1 {
		t.Error("the next run does not remember it")
	}
	if w.keeper.Value(w.item.UID, key{}) != first || w.keeper.Value("other", key{}) != nil || w.keeper.Value(w.item.UID, "other") != nil {
		t.Error("the keeper returns another value")
	}
	name := client.ObjectKeyFromObject(w.item)
	if all := w.keeper.Values(t.Context(), key{}); len(all) != 1 || all[name] != first {
		t.Errorf("got %v", all)
	}
	w.keeper.Forget(w.item.UID)
	if w.begin(true).Value(key{}, create) == first {
		t.Error("it was remembered of an item that is forgotten")
	}
	if one, ok := first.(*remembered); !ok || one.ended != 1 {
		t.Errorf("it was not told once that it is forgotten: %+v", first)
	}
	if err := w.items.Delete(t.Context(), &lsv1alpha1.DeployItem{ObjectMeta: w.item.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	if all := w.keeper.Values(t.Context(), key{}); len(all) != 0 {
		t.Errorf("the item is gone, but there is %v [R22, Rx11]", all)
	}
}

// remembered is a value that counts the calls of its method Forgotten.
type remembered struct{ ended int }

func (r *remembered) Forgotten() { r.ended++ }

func TestReadyMemory(t *testing.T) {
	w := newWorld(t)
	r := w.begin(false)
	stays, goes := apply.Ref{Kind: "ConfigMap", Name: "stays"}, apply.Ref{Kind: "ConfigMap", Name: "goes"}
	r.item.ready.set(stays, observe.Version{UID: "u", ResourceVersion: "1"})
	r.item.ready.set(goes, observe.Version{UID: "u", ResourceVersion: "1"})
	r.Inventory.Entries = []apply.Entry{{Kind: "ConfigMap", Name: "stays"}}
	r.Finished()
	if r.item.ready.get(stays) != (observe.Version{UID: "u", ResourceVersion: "1"}) || r.item.ready.get(goes) != (observe.Version{}) {
		t.Errorf("remembered: %v", r.item.ready.all)
	}
}
