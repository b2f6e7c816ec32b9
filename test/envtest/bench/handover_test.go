// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// BenchmarkScaleHandover measures how long it takes until the next job begins after the leader has ended: with SIGTERM,
// as in a rolling update, and with SIGKILL. The standby has the default settings of leader election.
func BenchmarkScaleHandover(b *testing.B) {
	w := newProcessBench(b)
	for b.Loop() {
		for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			f := w.newItems(1)
			leader, standby := w.newMock("--namespace="+f.namespace), w.newMock("--namespace="+f.namespace)
			w.start(leader)
			w.runJob(f)
			w.start(standby)
			time.Sleep(5 * time.Second) //nolint:forbidigo // until the standby has filled its cache
			began := time.Now()
			if err := leader.Process.Signal(end); err != nil {
				b.Fatal(err)
			}
			w.runJob(f)
			took := time.Since(began)
			b.Logf("%s: the next job ended after %.1f s", end, took.Seconds())
			b.ReportMetric(took.Seconds(), strings.ReplaceAll(end.String(), " ", "-")+"-s")
			_ = leader.Wait() // a killed process returns an error
			w.stop(standby)
		}
	}
}

// runJob starts a job of each item and waits until all jobs are finished.
func (w *processBench) runJob(f *itemSet) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), processTimeout)
	defer cancel()
	for _, item := range f.items {
		job, err := f.ls.Trigger(ctx, item)
		if err != nil {
			w.Fatal(err)
		}
		for {
			di := &lsv1alpha1.DeployItem{}
			if err := w.client.Get(ctx, item, di); err != nil {
				w.Fatal(err)
			}
			if di.Status.JobIDFinished == job {
				break
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the interval of a poll
		}
	}
}

// BenchmarkScaleStart measures the start of a process with 10 000 finished items: from the start until it is ready, and
// until the last item of a probe, which needs a job, is finished.
func BenchmarkScaleStart(b *testing.B) {
	w := newProcessBench(b)
	f := w.newFinished(getSize("SCALE_ITEMS", 10_000))
	for b.Loop() {
		probe := findFreeAddress(b)
		cmd := exec.Command(w.program, "--kubeconfig="+w.kubeconfig, "--metrics-bind-address=0", "--history-bind-address=127.0.0.1:0", "--leader-elect=false", "--health-probe-bind-address="+probe, "--namespace="+f.namespace) //nolint:gosec // built here
		began := time.Now()
		w.start(cmd)
		w.waitUntilReady(probe)
		b.ReportMetric(time.Since(began).Seconds(), "ready-s")
		u := w.stop(cmd)
		b.ReportMetric(u.cpu.Seconds(), "cpu-s")
		b.ReportMetric(float64(u.rss)/(1<<20), "MiB-rss")
	}
}

// newFinished creates items whose jobs are finished.
func (w *processBench) newFinished(n int) *itemSet {
	w.Helper()
	f := &itemSet{client: w.client, ls: landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{})}
	if err := f.createItems(w.Context(), n); err != nil {
		w.Fatal(err)
	}
	if err := f.each(w.Context(), func(ctx context.Context, key types.NamespacedName) error {
		di := &lsv1alpha1.DeployItem{}
		if err := w.client.Get(ctx, key, di); err != nil {
			return err
		}
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		if err := w.client.Update(ctx, di); err != nil {
			return err
		}
		di.Status = lsv1alpha1.DeployItemStatus{Phase: lsv1alpha1.DeployItemPhases.Succeeded, ObservedGeneration: di.Generation, JobID: "job", JobIDFinished: "job"}
		return w.client.Status().Update(ctx, di)
	}); err != nil {
		w.Fatal(err)
	}
	return f
}

// BenchmarkScaleDeletion measures how long deletions wait behind the reconciles of 10 000 finished items, in which
// nothing is due: from the deletion until the item is gone, while the process starts.
func BenchmarkScaleDeletion(b *testing.B) {
	w := newProcessBench(b)
	f := w.newFinished(getSize("SCALE_ITEMS", 10_000))
	for b.Loop() {
		counter := &faultnet.Counter{}
		mgr, err := f.newManager(counter.Wrap(w.config), itemType, library{})
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			b.Fatal("the cache is not filled")
		}
		b.Logf("requests until the cache is filled: %s; %d of them are writes", counter.Snapshot(), counter.Snapshot().OnlyWrites().Sum())
		waits, err := deleteItems(b.Context(), f, f.items[:deletions])
		if err != nil {
			b.Fatal(err)
		}
		slices.Sort(waits)
		b.ReportMetric(float64(waits[deletions*99/100-1].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(waits[deletions/2].Microseconds())/1000, "median-ms")
		stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		f.items = f.items[deletions:]
	}
}

// deletions is the number of deletions in BenchmarkScaleDeletion.
const deletions = 100

// deleteItems deletes items like Landscaper, four at a time, and returns how long each deletion took.
func deleteItems(ctx context.Context, f *itemSet, items []types.NamespacedName) ([]time.Duration, error) {
	waits := make([]time.Duration, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, item := range items {
		group.Go(func() error {
			began := time.Now()
			err := f.ls.Delete(ctx, item)
			waits[i] = time.Since(began)
			return err
		})
	}
	return waits, group.Wait()
}

// findFreeAddress returns an address on which nothing listens.
func findFreeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a benchmark's
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing is lost
	return l.Addr().String()
}

// waitUntilReady waits until the readiness check at an address succeeds.
func (w *processBench) waitUntilReady(address string) {
	w.Helper()
	for deadline := time.Now().Add(processTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // the interval of a poll
		res, err := http.Get("http://" + address + "/readyz") //nolint:gosec,noctx // ours
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	w.Fatal("the process is not ready")
}
