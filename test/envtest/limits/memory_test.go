// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	manyManifests = 5000
	manyItems     = 10_000
	configSize    = 1000 // size in bytes of an item's configuration, without its apiVersion, kind and keys
)

// readHeapSize returns the size of the heap after a garbage collection.
func readHeapSize() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// recordMaxHeapSize starts to measure the maximum size of the heap, including garbage. The function `stop` ends the
// measurement and returns the maximum.
func recordMaxHeapSize(ctx context.Context) (stop func() int64) {
	var mu sync.Mutex
	var most uint64
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := func(context.Context) {
		metrics.Read(sample)
		mu.Lock()
		defer mu.Unlock()
		most = max(most, sample[0].Value.Uint64())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, look, 5*time.Millisecond)
	}()
	return func() int64 {
		cancel()
		<-done
		return int64(most)
	}
}

// finished creates n items whose jobs have finished, so that a deployer only stores them in its cache.
func (w *env) finished(n int) {
	w.Helper()
	group, ctx := errgroup.WithContext(w.Context())
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			di := w.Landscaper.Item(w.Namespace, fmt.Sprintf("item-%d", i), w.Type, newMockConfig(`"export":"`+strings.Repeat("x", configSize)+`"`))
			if err := w.Landscaper.Create(ctx, di); err != nil {
				return err
			}
			di.Status = lsv1alpha1.DeployItemStatus{
				Phase: lsv1alpha1.DeployItemPhases.Succeeded, ObservedGeneration: di.Generation, JobID: "job", JobIDFinished: "job",
			}
			return w.Client.Status().Update(ctx, di)
		})
	}
	must(w, group.Wait())
}

// measureItemMemory returns the memory, in bytes per item, that the process releases when the deployer ends.
func (w *env) measureItemMemory(n int) (perItem int64) {
	w.Helper()
	m := w.startMockDeployerWithCache()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	must(w, wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &lsv1alpha1.DeployItemList{}
		err := m.GetClient().List(ctx, list)
		return len(list.Items) >= n, err
	}))
	before := readHeapSize()
	m.Stop()
	// The test references m until the test ends, so the fields are set to nil to release their memory.
	m.Manager, m.Registry = nil, nil
	return (before - readHeapSize()) / int64(n)
}

// startMockDeployerWithCache starts a mock deployer with the cache options of the programs.
func (w *env) startMockDeployerWithCache() *landscapertest.Manager {
	w.Helper()
	w.Start(mock.Args(nil), landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.ByObject = deployerlib.CacheByObject(w.Type)
	}))
	return w.Manager
}

var _ = Describe("Memory of a deployer", func() {
	It("stays small for each item, and almost zero for items of other deployers", func() {
		const n = 400
		w := newEnv(GinkgoTB(), cp)
		w.finished(n)
		own := w.measureItemMemory(n)
		w.Type = "example.org/other"
		foreign := w.measureItemMemory(n)
		AddReportEntry("memory", fmt.Sprintf("%d bytes for an item of its own, %d for one of others", own, foreign))
		Expect(own).To(BeNumerically("<", 32<<10))
		Expect(foreign).To(BeNumerically("<", 16<<10))
	})
})

// BenchmarkLimitsManifests deploys an item of 5000 manifests, runs it again without a change, and deletes it.
func BenchmarkLimitsManifests(b *testing.B) {
	w := newBenchmarkEnv(b)
	m := w.startManifestDeployer()
	for b.Loop() {
		config := w.configMaps(manyManifests, 1, "a")
		before, top := readHeapSize(), recordMaxHeapSize(b.Context())
		began := time.Now()
		di := w.createAndRun("many", config)
		b.ReportMetric(time.Since(began).Seconds(), "s-install")
		b.ReportMetric(float64(top()-before)/(1<<20), "MiB-peak")
		if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded || w.objects() != manyManifests {
			b.Fatalf("%s, %d objects, %+v", di.Status.Phase, w.objects(), di.Status.LastError)
		}
		b.ReportMetric(float64(readHeapSize()-before)/(1<<20), "MiB-held")
		b.ReportMetric(float64(len(config))/1024, "KiB-config")
		b.ReportMetric(float64(len(di.Status.ProviderStatus.Raw))/1024, "KiB-status")
		b.ReportMetric(float64(sizeOf(b, di))/1024, "KiB-item")
		began = time.Now()
		w.remove("many")
		b.ReportMetric(time.Since(began).Seconds(), "s-delete")
	}
	runtime.KeepAlive(m)
}

// BenchmarkLimitsItems measures the memory of 10 000 items in an idle deployer, first for items of its own type and
// then for items of another type.
func BenchmarkLimitsItems(b *testing.B) {
	w := newBenchmarkEnv(b)
	for b.Loop() {
		w.finished(manyItems)
		b.ReportMetric(float64(w.measureItemMemory(manyItems)), "B/item")
		w.Type = "example.org/other"
		b.ReportMetric(float64(w.measureItemMemory(manyItems)), "B/foreign-item")
	}
}

func newBenchmarkEnv(b *testing.B) *env {
	b.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	control, err := controlplane.Start(b.Context(), controlplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, control.Stop()) })
	return newEnv(b, control)
}
