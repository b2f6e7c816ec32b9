// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
)

// BenchmarkDeclarativeMemory measures the memory of an item with 5 ConfigMaps, with a handler and with the hand-written
// loop. It compares the memory of 700 items with the memory of 200 items, so that the result does not include the
// memory that does not depend on the number of items.
func BenchmarkDeclarativeMemory(b *testing.B) {
	const some, more = 200, 500
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	for b.Loop() {
		for unit, e := range map[string]*competitor{"B/item": newHandled(), "B/item/bare": newUnhandled()} {
			e.target, e.own = nil, nil // a counter would take memory for each item
			must(b, e.createAndStart(b.Context(), cp, some))
			before := e.measureMemory(b, e.items)
			must(b, e.create(b.Context(), more))
			after := e.measureMemory(b, e.items[some:])
			must(b, e.stop())
			b.ReportMetric((float64(after)-float64(before))/more, unit)
		}
	}
}

// measureMemory runs an install and a no-op of the given items, and returns the size of the heap afterwards.
func (e *competitor) measureMemory(b *testing.B, items []types.NamespacedName) uint64 {
	b.Helper()
	for leg := range changedLeg {
		must(b, e.runJobs(b.Context(), leg, items))
	}
	e.mu.Lock()
	e.finished = map[string]bool{}
	e.mu.Unlock()
	return waitForStableHeap(5)
}

// waitForStableHeap waits until the size of the heap has stayed the same for some seconds, for at most half a minute more,
// and returns this size. The reconciles that follow the last job must have ended before that. The memory of a deployer is
// released only when a timer fires.
func waitForStableHeap(seconds int) uint64 {
	last, same := readHeapSize(), 0
	for range seconds + 30 {
		<-time.After(time.Second) // no event reports the end of a timer
		now := readHeapSize()
		if same++; now+now/200 < last || last+last/200 < now {
			same = 0
		}
		if last = now; same == seconds {
			break
		}
	}
	return last
}
