// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	itemType   = mock.Type
	itemConfig = `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"}`

	workers = 10
	items   = 500 // number of items in the benchmarks that do not set their own number
)

// contender is a program that processes the jobs of all items. The method `add` adds the program to a manager.
type contender interface{ add(mgr ctrl.Manager) error }

// result contains the elapsed time, the processor time and the number of requests that a contender needed for its jobs.
type result struct {
	took  time.Duration
	cpu   time.Duration
	calls int
	jobs  int
}

func (r *result) add(o result) {
	r.took, r.cpu, r.calls, r.jobs = r.took+o.took, r.cpu+o.cpu, r.calls+o.calls, r.jobs+o.jobs
}

func (r *result) perSecond() float64 { return float64(r.jobs) / r.took.Seconds() }

func (r *result) perJob() float64 { return float64(r.calls) / float64(r.jobs) }

func (r *result) cpuPerJob() float64 { return r.cpu.Seconds() * 1000 / float64(r.jobs) }

// lane contains a contender and the sum of its results so far.
type lane struct {
	contender
	sum result
}

// size is the amount of work in a benchmark.
type size struct {
	items int
	waves int // number of jobs of each item
}

// BenchmarkJobs measures three workloads: three jobs for each of 500 items, one job for each of 3000 items, and one job
// for each of 10 000 items. Each workload is processed by the library and by a hand-written loop. The two contenders
// alternate every second, so that other load on the machine affects both.
func BenchmarkJobs(b *testing.B) {
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			b.Error(err)
		}
	})
	ctrl.SetLogger(logr.Discard())
	// Hide messages about watches that end with their manager, because these messages are expected.
	klog.SetLogger(logr.Discard())
	// This run warms up the API server. It is not measured.
	runWorkload(b, cp.Config, size{50, 3}, &lane{contender: library{}}, &lane{contender: &bare{}})
	for _, size := range []size{{500, 3}, {3000, 1}, {10_000, 1}} {
		b.Run(fmt.Sprintf("items=%d", size.items), func(b *testing.B) {
			ours, theirs := &lane{contender: library{}}, &lane{contender: &bare{}}
			for b.Loop() {
				runWorkload(b, cp.Config, size, ours, theirs)
			}
			printTable(b, size, &ours.sum, &theirs.sum)
		})
	}
}

// printTable prints the table of the results, and reports the numbers to the benchmark.
func printTable(b *testing.B, size size, ours, theirs *result) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%d items x %d jobs\tjobs/s\tcalls/job\tCPU ms/job\t\n", size.items, size.waves)
	fmt.Fprintf(w, "mock deployer, hooks on all ten types\t%.0f\t%.2f\t%.2f\t\n", ours.perSecond(), ours.perJob(), ours.cpuPerJob())
	fmt.Fprintf(w, "bare loop, the same writes\t%.0f\t%.2f\t%.2f\t\n", theirs.perSecond(), theirs.perJob(), theirs.cpuPerJob())
	fmt.Fprintf(w, "ratio\t%.2f\t%.2f\t%.2f\t\n", ours.perSecond()/theirs.perSecond(), ours.perJob()/theirs.perJob(), ours.cpuPerJob()/theirs.cpuPerJob())
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Log(text.String())
	b.ReportMetric(ours.perSecond(), "jobs/s")
	b.ReportMetric(ours.perJob(), "calls/job")
	b.ReportMetric(ours.cpuPerJob(), "cpu-ms/job")
	b.ReportMetric(ours.perSecond()/theirs.perSecond(), "ratio")
}

// runWorkload creates a namespace with items for each lane. In each wave, every item gets one job. Then the contenders
// start and work in turns. The time of a contender runs from its start until its last job has finished. The turns of
// other contenders do not count.
func runWorkload(b *testing.B, cfg *rest.Config, size size, lanes ...*lane) {
	b.Helper()
	scheme, err := landscapertest.Scheme()
	if err != nil {
		b.Fatal(err)
	}
	cl, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	fields := make([]itemSet, len(lanes))
	for i := range fields {
		fields[i] = itemSet{client: cl, ls: landscapertest.NewLandscaper(cl, landscapertest.LandscaperOptions{})}
		if err := fields[i].createItems(b.Context(), size.items); err != nil {
			b.Fatal(err)
		}
	}
	for range size.waves {
		waves := make([]*jobBatch, len(lanes))
		for i, l := range lanes {
			if waves[i], err = fields[i].startJobs(b.Context(), cfg, l.contender); err != nil {
				b.Fatal(err)
			}
		}
		runInTurns(b, waves)
		for i, l := range lanes {
			l.sum.add(waves[i].result())
		}
	}
}

// runInTurns lets the contenders of the waves work in turns until all jobs are finished.
func runInTurns(b *testing.B, waves []*jobBatch) {
	b.Helper()
	for open := len(waves); open > 0; {
		for _, w := range waves {
			if w.isDone {
				continue
			}
			if err := w.runTurn(b.Context()); err != nil {
				b.Fatal(err)
			}
			if w.isDone {
				open--
			}
		}
	}
}

// itemSet is a namespace with the items of one contender.
type itemSet struct {
	client    client.WithWatch
	ls        *landscapertest.Landscaper
	namespace string
	items     []types.NamespacedName
}

// createItems creates the namespace, the Context and the items of the field.
func (f *itemSet) createItems(ctx context.Context, n int) error {
	ns := &corev1.Namespace{}
	ns.GenerateName = "bench-"
	if err := f.client.Create(ctx, ns); err != nil {
		return err
	}
	f.namespace = ns.Name
	for i := range n {
		f.items = append(f.items, types.NamespacedName{Namespace: ns.Name, Name: fmt.Sprintf("item-%d", i)})
	}
	if err := f.ls.EnsureContext(ctx, f.namespace); err != nil {
		return err
	}
	return f.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		return f.client.Create(ctx, f.ls.Item(key.Namespace, key.Name, itemType, itemConfig))
	})
}

// each calls the function `do` for all items of the field, ten at a time.
func (f *itemSet) each(ctx context.Context, do func(context.Context, types.NamespacedName) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for _, key := range f.items {
		group.Go(func() error { return do(ctx, key) })
	}
	return group.Wait()
}

// startJobs starts one job for each item, and returns the wave. It does not start the contender.
func (f *itemSet) startJobs(ctx context.Context, cfg *rest.Config, c contender) (*jobBatch, error) {
	if err := f.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		_, err := f.ls.Trigger(ctx, key)
		return err
	}); err != nil {
		return nil, err
	}
	list := &lsv1alpha1.DeployItemList{}
	if err := f.client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return nil, err
	}
	w := &jobBatch{field: f, since: list.ResourceVersion, counter: &faultnet.Counter{}, gate: newGate()}
	w.counter.SetInjector(w.gate.wait)
	var err error
	w.manager, err = f.newManager(w.counter.Wrap(cfg), itemType, c)
	return w, err
}

// newManager creates a manager whose cache contains only the objects in the namespace of the field. Like the managers
// of package deployermain, it stores items without managed fields.
func (f *itemSet) newManager(cfg *rest.Config, kind lsv1alpha1.DeployItemType, c contender) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: f.client.Scheme(), Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}, ByObject: deployerlib.CacheByObject(kind)},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	return mgr, c.add(mgr)
}

// waitUntilFinished watches the items until all their jobs are finished.
func (f *itemSet) waitUntilFinished(ctx context.Context, since string) error {
	w, err := f.client.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(f.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: since}})
	if err != nil {
		return err
	}
	defer w.Stop()
	finished := map[string]bool{}
	for len(finished) < len(f.items) {
		select {
		case e := <-w.ResultChan():
			di, ok := e.Object.(*lsv1alpha1.DeployItem)
			if !ok {
				return fmt.Errorf("the watch ended: %v", e.Object)
			}
			if di.Status.JobID == di.Status.JobIDFinished {
				finished[di.Name] = true
			}
		case <-ctx.Done():
			return fmt.Errorf("%d of %d jobs finished: %w", len(finished), len(f.items), ctx.Err())
		}
	}
	return nil
}
