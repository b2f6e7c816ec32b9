// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/observe"
)

// BenchmarkWatch measures the cost of drift detection with 100 000 objects of 2000 items: the memory per object with
// and without the expected state of the items, the duration of the first list, and the time from an edit to the event
// that reports it.
func BenchmarkWatch(b *testing.B) {
	const objects, perItem, edits = 100_000, 50, 200
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	klog.SetLogger(logr.Discard())
	store := watchData{client: kubernetes.NewForConfigOrDie(cp.Config)}
	must(b, store.fill(b.Context(), objects, perItem))

	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		w, events := newWatcher(ctx, b, cp.Config)
		empty := readHeapSize()
		began := time.Now()
		_, err := w.Watch(ctx, store.getGVR())
		must(b, err)
		took := time.Since(began)
		watched := readHeapSize() - empty
		for item, expected := range store.newExpected(w, objects, perItem) {
			w.SetBaseline(item, expected)
		}
		total := readHeapSize() - empty
		if got := w.GetStats(); got.Objects != objects || len(events) > 0 {
			b.Fatalf("%+v, %d events", got, len(events))
		}
		latency := store.measureEvents(ctx, b, events, edits)
		b.ReportMetric(float64(watched)/objects, "B/watched")
		b.ReportMetric(float64(total)/objects, "B/expected")
		b.ReportMetric(took.Seconds(), "s/sync")
		b.ReportMetric(latency.Seconds()*1000, "ms/edit")
		runtime.KeepAlive(w)
		cancel()
		w.Wait()
	}
}

func newWatcher(ctx context.Context, b *testing.B, config *rest.Config) (*observe.Watcher, chan observe.Drift) {
	b.Helper()
	w, err := observe.NewForConfig(config, observe.Options{SyncTimeout: 5 * time.Minute})
	must(b, err)
	events := make(chan observe.Drift, 1000)
	w.OnDrift(func(e observe.Drift) { events <- e })
	w.Start(ctx)
	return w, events
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func readHeapSize() uint64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watchData creates and edits many ConfigMaps of many items.
type watchData struct{ client *kubernetes.Clientset }

func (watchData) getGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func (watchData) newOwner(i, perItem int) ownership.Owner {
	return ownership.Owner{
		UID: types.UID(fmt.Sprintf("%036d", i/perItem)), Landscape: types.UID(fmt.Sprintf("%036d", 0)),
		Namespace: "landscape", Name: fmt.Sprintf("item-%d", i/perItem),
	}
}

func (watchData) name(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "bench-drift", Name: fmt.Sprintf("settings-of-application-%06d", i)}
}

func (s watchData) fill(ctx context.Context, objects, perItem int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name(0).Namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range objects {
		group.Go(func() error {
			owner, force := s.newOwner(i, perItem), true
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": "red", "size": "big"},
			}}
			obj.SetName(s.name(i).Name)
			obj.SetLabels(map[string]string{"app": "web", "tier": "front"})
			owner.Mark(obj)
			body, err := json.Marshal(obj)
			if err != nil {
				return err
			}
			_, err = s.client.CoreV1().ConfigMaps(s.name(i).Namespace).Patch(ctx, s.name(i).Name, types.ApplyPatchType, body,
				metav1.PatchOptions{FieldManager: owner.FieldManager(), Force: &force})
			return err
		})
	}
	return group.Wait()
}

// newExpected returns the expected state that an inventory would contain. The strings are copies, so that the benchmark
// also measures their memory.
func (s watchData) newExpected(w *observe.Watcher, objects, perItem int) map[types.UID][]observe.BaselineObject {
	out := map[types.UID][]observe.BaselineObject{}
	for i := range objects {
		seen, _ := w.Get(s.getGVR(), s.name(i))
		item := s.newOwner(i, perItem).UID
		out[item] = append(out[item], observe.BaselineObject{
			Object: observe.Object{Resource: s.getGVR(), NamespacedName: s.name(i)},
			UID:    types.UID([]byte(seen.UID)), Fingerprint: ownership.Fingerprint([]byte(seen.Fingerprint)), ResourceVersion: string([]byte(seen.ResourceVersion)),
		})
	}
	return out
}

// measureEvents changes objects one after the other, and returns the mean time from the request to the event.
func (s watchData) measureEvents(ctx context.Context, b *testing.B, events <-chan observe.Drift, edits int) time.Duration {
	b.Helper()
	began := time.Now()
	for i := range edits {
		body := fmt.Appendf(nil, `{"data":{"color":"blue-%d"}}`, time.Now().UnixNano())
		_, err := s.client.CoreV1().ConfigMaps(s.name(i).Namespace).Patch(ctx, s.name(i).Name, types.MergePatchType, body, metav1.PatchOptions{})
		must(b, err)
		if e := <-events; e.Reason != observe.DriftReasonChanged {
			b.Fatal(e)
		}
	}
	return time.Since(began) / time.Duration(edits)
}
