// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	manyManifests = 5000
	manyItems     = 10_000
	// The sizes in bytes of an item's configuration, without its apiVersion, kind and keys.
	smallConfig, largeConfig = 0, 1000
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

// createFinished creates n items whose jobs have finished, so that a deployer only stores them in its cache.
func (w *env) createFinished(n, configSize int) {
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

// measureMemory returns the memory, in bytes, that the process releases when an idle deployer with n items ends. If the
// items are of its type, it has reconciled each of them before.
func (w *env) measureMemory(n int, own bool) int64 {
	w.Helper()
	m, reconciled := w.startMockDeployerWithCache()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	must(w, wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &lsv1alpha1.DeployItemList{}
		err := m.GetClient().List(ctx, list, client.InNamespace(w.Namespace))
		return len(list.Items) >= n && (!own || int(reconciled.Load()) >= n), err
	}))
	before := readHeapSize()
	m.Stop()
	// The test references m until the test ends, so the fields are set to nil to release their memory.
	m.Manager, m.Registry = nil, nil
	return before - readHeapSize()
}

// measureItemMemory creates n finished items with configurations of a given size. It returns the memory, in bytes per
// item, that they take in a deployer of their type and in a deployer of another type.
func (w *env) measureItemMemory(n, configSize int) (own, foreign int64) {
	w.Helper()
	kind := w.Type
	empty := w.measureMemory(0, true)
	w.createFinished(n, configSize)
	own = w.measureMemory(n, true)
	w.Type = "example.org/other"
	foreign = w.measureMemory(n, false)
	w.Type = kind
	return (own - empty) / int64(n), (foreign - empty) / int64(n)
}

// startMockDeployerWithCache starts a mock deployer with the cache options of the programs. The counter counts the ends
// of its reconciles.
func (w *env) startMockDeployerWithCache() (*landscapertest.Manager, *atomic.Int64) {
	w.Helper()
	reconciled := &atomic.Int64{}
	args := mock.Args(nil)
	args.Observe = func(s deployerlib.Step) {
		if s.Kind == deployerlib.StepPhase && s.Outcome != "proceed" {
			reconciled.Add(1)
		}
	}
	w.Start(args, landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.ByObject = deployerlib.CacheByObject(w.Type)
	}))
	return w.Manager, reconciled
}

var _ = Describe("Memory of a deployer", func() {
	It("stays small for each item, and almost zero for items of other deployers", func() {
		w := newEnv(GinkgoTB(), cp)
		own, foreign := w.measureItemMemory(400, largeConfig)
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

// BenchmarkLimitsItems measures the memory of 10 000 finished items in an idle deployer of their type and in one of
// another type, for a small and a large configuration.
func BenchmarkLimitsItems(b *testing.B) {
	for name, size := range map[string]int{"small configuration": smallConfig, "configuration of 1 KB": largeConfig} {
		b.Run(name, func(b *testing.B) {
			w := newBenchmarkEnv(b)
			for b.Loop() {
				own, foreign := w.measureItemMemory(manyItems, size)
				b.ReportMetric(float64(own), "B/item")
				b.ReportMetric(float64(foreign), "B/foreign-item")
			}
		})
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
