// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// BenchmarkScaleHandover measures how long it takes until the next job begins after the leader has ended: with SIGTERM,
// as in a rolling update, and with SIGKILL. The standby has the default settings of leader election.
func BenchmarkScaleHandover(b *testing.B) {
	w := newProcessBench(b)
	for b.Loop() {
		for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			f := w.newItems(1)
			probe := findFreeAddress(b)
			leader, standby := w.newMock("--namespace="+f.namespace), w.newMock("--namespace="+f.namespace, "--health-probe-bind-address="+probe)
			w.start(leader)
			w.runJob(f)
			w.start(standby)
			w.waitUntilReady(probe)
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
		if _, err := f.ls.WaitForJob(ctx, item, job); err != nil {
			w.Fatal(err)
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

// deletions is the number of deletions in BenchmarkScaleDeletion.
const deletions = 100

// BenchmarkScaleDeletion measures how long deletions wait behind the reconciles of 10 000 finished items, in which
// nothing is due: from the time at which the process or the API server has the deletion job until the deployer begins
// with it. The process has the settings of a program. A change of the Context, to which all items refer, causes the
// reconciles.
func BenchmarkScaleDeletion(b *testing.B) {
	w := newProcessBench(b)
	f := w.newFinished(getSize("SCALE_ITEMS", 10_000))
	deployer := &observedDeployer{begun: map[string]chan time.Time{}}
	ctx, stop := context.WithCancel(b.Context())
	mgr, err := deployer.newManager(ctx, w.config, f.namespace)
	must(b, err)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	deployer.waitUntilQuiet()
	for b.Loop() {
		deleted := f.items[:deletions]
		f.items = f.items[deletions:]
		must(b, f.ls.MarkForDeletion(ctx, deleted...))
		before := deployer.reconciles.Load()
		lsCtx := &lsv1alpha1.Context{}
		must(b, w.client.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: lsv1alpha1.DefaultContextName}, lsCtx))
		lsCtx.Configurations = map[string]lsv1alpha1.AnyJSON{"changed": lsv1alpha1.NewAnyJSON(fmt.Appendf(nil, "%d", len(f.items)))}
		must(b, w.client.Update(ctx, lsCtx))
		waits, err := deployer.deleteItems(ctx, f, deleted)
		must(b, err)
		slices.Sort(waits)
		b.ReportMetric(float64(deployer.reconciles.Load()-before), "reconciles")
		b.ReportMetric(float64(waits[deletions*99/100-1].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(waits[deletions/2].Microseconds())/1000, "median-ms")
		for _, item := range deleted {
			must(b, f.ls.WaitForDeletion(ctx, item))
		}
	}
	stop()
	must(b, <-ended)
}

// observedDeployer is the mock deployer with a hook that records when a deletion begins.
type observedDeployer struct {
	reconciles atomic.Int64
	arrived    sync.Map // by name of the item: when its deletion job arrived in the cache

	mu    sync.Mutex
	begun map[string]chan time.Time // by name of the item
}

// newManager returns the manager of a program with the deployer.
func (d *observedDeployer) newManager(ctx context.Context, cfg *rest.Config, namespace string) (ctrl.Manager, error) {
	args := deployerlib.DeployerArgs{
		Name: "bench.deployerkit.dev", Type: itemType, Registerer: prometheus.NewRegistry(),
		Deployer: mock.New(extension.ReconcileExtensionHookSetup{Hook: d.record, HookTypes: []extension.HookType{extension.AfterResponsibilityCheckHook}}),
		Options:  controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: new(true)},
	}
	mgr, _, err := deployermain.NewManagers(deployermain.Options{
		Host: cfg, Namespace: namespace, Logger: logr.Discard(), MetricsBindAddress: "0", HealthProbeBindAddress: "0", HistoryBindAddress: "0",
		Election: deployermain.Election{Disabled: true},
	}, &args)
	if err != nil {
		return nil, err
	}
	items, err := mgr.GetCache().GetInformer(ctx, &lsv1alpha1.DeployItem{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if _, err := items.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: d.recordArrival}); err != nil {
		return nil, err
	}
	return mgr, deployerlib.Add(logr.Discard(), mgr, nil, args)
}

// recordArrival records when the cache receives an item whose deletion has yet to begin.
func (d *observedDeployer) recordArrival(_, obj any) {
	if di, ok := obj.(*lsv1alpha1.DeployItem); ok && isDeletionDue(di) {
		d.arrived.LoadOrStore(di.Name, time.Now())
	}
}

// isDeletionDue reports whether Landscaper has requested the deletion job of an item, and the job has not ended.
func isDeletionDue(di *lsv1alpha1.DeployItem) bool {
	return di.DeletionTimestamp != nil && di.Status.JobID != di.Status.JobIDFinished
}

// record is called in each reconcile before anything is changed.
func (d *observedDeployer) record(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	d.reconciles.Add(1)
	if !isDeletionDue(di) {
		return nil, nil
	}
	select {
	case d.getBegun(di.Name) <- time.Now():
	default: // not the first reconcile of the job
	}
	return nil, nil
}

// getBegun returns the channel that receives when the deletion of an item begins.
func (d *observedDeployer) getBegun(name string) chan time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun[name] == nil {
		d.begun[name] = make(chan time.Time, 1)
	}
	return d.begun[name]
}

// waitUntilQuiet waits until no reconcile has begun for three seconds.
func (d *observedDeployer) waitUntilQuiet() {
	for last := int64(-1); last != d.reconciles.Load(); <-time.After(3 * time.Second) {
		last = d.reconciles.Load()
	}
}

// deleteItems requests the deletion jobs of items, four at a time, and returns how long each of them waited: since the
// API server has confirmed the request, or since the item has arrived in the cache if that was earlier.
func (d *observedDeployer) deleteItems(ctx context.Context, f *itemSet, items []types.NamespacedName) ([]time.Duration, error) {
	waits := make([]time.Duration, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, item := range items {
		group.Go(func() error {
			if _, err := f.ls.Trigger(ctx, item); err != nil {
				return err
			}
			since := time.Now()
			select {
			case begun := <-d.getBegun(item.Name):
				if arrived, ok := d.arrived.Load(item.Name); ok {
					if at, ok := arrived.(time.Time); ok && at.Before(since) {
						since = at
					}
				}
				waits[i] = max(begun.Sub(since), 0) // the deployer may begin before the arrival is recorded
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
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
