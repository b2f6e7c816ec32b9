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
	store := warehouse{client: kubernetes.NewForConfigOrDie(cp.Config)}
	must(b, store.fill(b.Context(), objects, perItem))

	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		w, events := watcher(ctx, b, cp.Config)
		empty := heap()
		began := time.Now()
		_, err := w.Watch(ctx, store.gvr())
		must(b, err)
		took := time.Since(began)
		watched := heap() - empty
		for item, expected := range store.expected(w, objects, perItem) {
			w.SetBaseline(item, expected)
		}
		total := heap() - empty
		if got := w.Stats(); got.Objects != objects || len(events) > 0 {
			b.Fatalf("%+v, %d events", got, len(events))
		}
		latency := store.edit(ctx, b, events, edits)
		b.ReportMetric(float64(watched)/objects, "B/watched")
		b.ReportMetric(float64(total)/objects, "B/expected")
		b.ReportMetric(took.Seconds(), "s/sync")
		b.ReportMetric(latency.Seconds()*1000, "ms/edit")
		runtime.KeepAlive(w)
		cancel()
		w.Wait()
	}
}

func watcher(ctx context.Context, b *testing.B, config *rest.Config) (*observe.Watcher, chan observe.Drift) {
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

func heap() uint64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// warehouse creates and edits many ConfigMaps of many items.
type warehouse struct{ client *kubernetes.Clientset }

func (warehouse) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func (warehouse) owner(i, perItem int) ownership.Owner {
	return ownership.Owner{
		UID: types.UID(fmt.Sprintf("%036d", i/perItem)), Landscape: types.UID(fmt.Sprintf("%036d", 0)),
		Namespace: "landscape", Name: fmt.Sprintf("item-%d", i/perItem),
	}
}

func (warehouse) name(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "bench-drift", Name: fmt.Sprintf("settings-of-application-%06d", i)}
}

func (s warehouse) fill(ctx context.Context, objects, perItem int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name(0).Namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range objects {
		group.Go(func() error {
			owner, force := s.owner(i, perItem), true
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": "red", "size": "big"},
			}}
			obj.SetName(s.name(i).Name)
			obj.SetLabels(map[string]string{"app": "web", "tier": "front"})
			owner.Stamp(obj)
			body, err := json.Marshal(obj)
			if err != nil {
				return err
			}
			_, err = s.client.CoreV1().ConfigMaps(s.name(i).Namespace).Patch(ctx, s.name(i).Name, types.ApplyPatchType, body,
				metav1.PatchOptions{FieldManager: owner.Manager(), Force: &force})
			return err
		})
	}
	return group.Wait()
}

// expected returns the expected state that an inventory would contain. The strings are copies, so that the benchmark
// also measures their memory.
func (s warehouse) expected(w *observe.Watcher, objects, perItem int) map[types.UID][]observe.Owned {
	out := map[types.UID][]observe.Owned{}
	for i := range objects {
		seen, _ := w.Get(s.gvr(), s.name(i))
		item := s.owner(i, perItem).UID
		out[item] = append(out[item], observe.Owned{
			Object: observe.Object{Resource: s.gvr(), NamespacedName: s.name(i)},
			UID:    types.UID([]byte(seen.UID)), Key: ownership.Key([]byte(seen.Key)), ResourceVersion: string([]byte(seen.ResourceVersion)),
		})
	}
	return out
}

// edit changes objects one after the other, and returns the mean time from the request to the event.
func (s warehouse) edit(ctx context.Context, b *testing.B, events <-chan observe.Drift, edits int) time.Duration {
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
