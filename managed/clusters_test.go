// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// isOpen reports whether the next run would get the cluster.
func (w *testEnv) isOpen() bool {
	w.manager.clusters.mu.Lock()
	defer w.manager.clusters.mu.Unlock()
	return w.manager.clusters.open[w.cluster.Client] == w.cluster
}

// checkIdle advances the clock so that the next idle check takes place.
func (w *testEnv) checkIdle() {
	w.Helper()
	w.waitUntil("the idle check waits", w.clock.HasWaiters)
	w.clock.Step(idleCheckInterval)
}

// setLastUsed sets the time at which the cluster was last requested.
func (w *testEnv) setLastUsed(at time.Time) {
	w.manager.clusters.mu.Lock()
	defer w.manager.clusters.mu.Unlock()
	w.cluster.lastUsed = at
}

// waitUntilReleased waits until the cluster has ended.
func (w *testEnv) waitUntilReleased() {
	w.Helper()
	select {
	case <-w.released:
	case <-time.After(30 * time.Second):
		w.Fatal("the cluster was not released")
	}
	if w.isOpen() || w.cluster.Go(func(context.Context) {}) || w.cluster.KeepOpen("other") {
		w.Error("the cluster goes on")
	}
}

func TestIdleClusters(t *testing.T) {
	watched := []observe.BaselineObject{{Object: observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cm"}}, UID: "u"}}
	t.Run("an idle cluster is closed", func(t *testing.T) {
		w := newTestEnv(t)
		w.checkIdle()
		w.waitUntilReleased()
	})
	for name, use := range map[string]struct{ begin, end func(*testEnv) }{
		"nothing of the watches": {
			func(w *testEnv) { w.cluster.Watcher().SetBaseline(w.item.UID, watched) }, func(w *testEnv) { w.cluster.Watcher().Forget(w.item.UID) },
		},
		"Keep": {
			func(w *testEnv) { w.cluster.KeepOpen(w.item.UID) }, func(w *testEnv) { w.cluster.StopKeepingOpen(w.item.UID) },
		},
		"Keep, and forgotten": {
			func(w *testEnv) { w.cluster.KeepOpen(w.item.UID) }, func(w *testEnv) { w.manager.Forget(w.item.UID) },
		},
		"a run that just began": {
			func(w *testEnv) { w.setLastUsed(startTime) }, func(w *testEnv) { w.setLastUsed(time.Time{}) },
		},
	} {
		t.Run("stay open for "+name, func(t *testing.T) {
			w := newTestEnv(t)
			w.setLastUsed(time.Time{})
			use.begin(w)
			if w.manager.clusters.close(w.cluster, true) || !w.isOpen() {
				t.Fatal("closed although a run needs it")
			}
			use.end(w)
			w.checkIdle()
			w.waitUntilReleased()
		})
	}
}

func TestClusterEnds(t *testing.T) {
	for name, end := range map[string]func(*testEnv){
		"with the manager":              func(w *testEnv) { w.stop() },
		"when its client left the pool": func(w *testEnv) { close(w.ended) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			ran := make(chan struct{})
			if !w.cluster.Go(func(ctx context.Context) { <-ctx.Done(); close(ran) }) {
				t.Fatal("an open cluster runs nothing")
			}
			end(w)
			w.waitUntilReleased()
			select {
			case <-ran:
			default:
				t.Error("released before the goroutine ended")
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Run("closes the clients immediately if no goroutine runs", func(t *testing.T) {
		w := newTestEnv(t)
		w.stop()
		w.manager.clusters.stop(func() { close(w.ended) })
		w.waitUntilReleased()
	})
	for name, end := range map[string]func(w *testEnv, done chan struct{}){
		"closes the clients after the last goroutine has ended":                  func(_ *testEnv, done chan struct{}) { close(done) },
		"closes the clients after five seconds, although a goroutine still runs": func(w *testEnv, _ chan struct{}) { w.clock.Step(lastRequests) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			done := make(chan struct{})
			var isOpen atomic.Bool
			isOpen.Store(true)
			w.cluster.Go(func(ctx context.Context) {
				<-ctx.Done()
				select {
				case <-done:
				case <-w.ended:
				}
			})
			w.stop()
			go w.manager.clusters.stop(func() { isOpen.Store(false); close(w.ended) })
			w.waitUntil("the clusters wait for the goroutine", func() bool {
				w.manager.clusters.mu.Lock()
				defer w.manager.clusters.mu.Unlock()
				return w.manager.clusters.ctx == nil
			})
			if w.clock.Step(lastRequests - time.Millisecond); !isOpen.Load() {
				t.Fatal("the clients are closed although the goroutine may still send requests")
			}
			end(w, done)
			w.waitUntilReleased()
			w.waitUntil("the clients are closed", func() bool { return !isOpen.Load() })
		})
	}
}

// TestGarbageCollectionForgetsDeletedItems covers items for whose deletion Delete is not called, because they have the
// annotation delete-without-uninstall.
func TestGarbageCollectionForgetsDeletedItems(t *testing.T) {
	w := newTestEnv(t)
	w.begin(true)
	w.cluster.KeepOpen(w.item.UID)
	w.cluster.Watcher().SetBaseline(w.item.UID, nil)
	anew := w.item.DeepCopy()
	anew.UID, anew.Name = "earlier", "item" // an earlier item that had the name of the current item
	w.manager.items.get(anew)
	ctx, cancel := context.WithCancel(t.Context())
	w.manager.clusters.running.Go(func() { w.manager.clusters.runGarbageCollection(ctx) })
	t.Cleanup(cancel)
	known := func() (here, earlier bool) {
		keys := w.manager.items.listKeys()
		_, here = keys[w.item.UID]
		_, earlier = keys[anew.UID]
		return here, earlier
	}
	w.waitUntil("the sweep waits", func() bool { return w.clock.Waiters() >= 2 })
	w.clock.Step(garbageCollectionInterval)
	w.waitUntil("the earlier one is forgotten", func() bool { _, earlier := known(); return !earlier })
	if here, _ := known(); !here || w.cluster.Watcher().GetStats().Items != 1 {
		t.Error("an item that is there was forgotten")
	}
	if err := w.items.Delete(t.Context(), &lsv1alpha1.DeployItem{ObjectMeta: w.item.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(garbageCollectionInterval)
	w.waitUntil("the item is forgotten", func() bool { here, _ := known(); return !here })
	w.manager.clusters.mu.Lock()
	defer w.manager.clusters.mu.Unlock()
	if w.cluster.Watcher().GetStats().Items != 0 || len(w.cluster.users) != 0 {
		t.Error("its targets still know the item")
	}
}

func TestGetOrCreateValue(t *testing.T) {
	type key struct{}
	w := newTestEnv(t)
	made := 0
	create := func() any { made++; return &forgottenCounter{} }
	first := w.begin(true).GetOrCreateValue(key{}, create)
	if w.begin(false).GetOrCreateValue(key{}, create) != first || made != 1 {
		t.Error("the next run does not remember it")
	}
	if w.manager.GetValue(w.item.UID, key{}) != first || w.manager.GetValue("other", key{}) != nil || w.manager.GetValue(w.item.UID, "other") != nil {
		t.Error("the manager returns another value")
	}
	name := client.ObjectKeyFromObject(w.item)
	if all := w.manager.ListValues(t.Context(), key{}); len(all) != 1 || all[name] != first {
		t.Errorf("got %v", all)
	}
	w.manager.Forget(w.item.UID)
	if w.begin(true).GetOrCreateValue(key{}, create) == first {
		t.Error("it was remembered of an item that is forgotten")
	}
	if one, ok := first.(*forgottenCounter); !ok || one.ended != 1 {
		t.Errorf("it was not told once that it is forgotten: %+v", first)
	}
	if err := w.items.Delete(t.Context(), &lsv1alpha1.DeployItem{ObjectMeta: w.item.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	if all := w.manager.ListValues(t.Context(), key{}); len(all) != 0 {
		t.Errorf("the item is gone, but there is %v [R22, Rx11]", all)
	}
}

// forgottenCounter is a value that counts the calls of its method Forgotten.
type forgottenCounter struct{ ended int }

func (r *forgottenCounter) Forget() { r.ended++ }

func TestRecordReady(t *testing.T) {
	w := newTestEnv(t)
	r := w.begin(false)
	stays, goes := apply.Ref{Kind: "ConfigMap", Name: "stays"}, apply.Ref{Kind: "ConfigMap", Name: "goes"}
	r.item.ready.set(stays, observe.Version{UID: "u", ResourceVersion: "1"})
	r.item.ready.set(goes, observe.Version{UID: "u", ResourceVersion: "1"})
	r.Inventory.Entries = []apply.Entry{{Kind: "ConfigMap", Name: "stays"}}
	r.Finish()
	if r.item.ready.get(stays) != (observe.Version{UID: "u", ResourceVersion: "1"}) || r.item.ready.get(goes) != (observe.Version{}) {
		t.Errorf("remembered: %v", r.item.ready.all)
	}
}
