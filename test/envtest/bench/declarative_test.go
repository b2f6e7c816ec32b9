// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	estates     = 1000 // items of BenchmarkDeclarative
	atATime     = 100  // items of one turn
	perEstate   = 5    // children of each
	estateType  = "example.org/estate"
	estateLimit = 20 * time.Minute // for all
)

// legs are the steps that the items go through: everything is new, nothing changed, one child of each item changed.
var legs = []string{"install", "no-op", "one of 5 changed"}

// estate is a contender with a namespace full of items, each of which wants some ConfigMaps.
type estate struct {
	field

	name   string
	config *rest.Config      // of the control plane
	target *faultnet.Counter // of requests to the target
	own    *faultnet.Counter // of requests about items
	add    func(mgr ctrl.Manager, e *estate) error
	stop   func() error
	sum    [3]result // by leg
	heap   uint64    // bytes, of all items, in the end

	mu       sync.Mutex
	finished map[string]bool // jobs
	news     chan struct{}
	failed   error
}

// BenchmarkDeclarative runs 1000 items of 5 ConfigMaps with one handler and 10 workers, and with a bare loop that sends
// the same requests. They take turns after each 100 items, so that other load on the machine affects both.
func BenchmarkDeclarative(b *testing.B) {
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	compete(b, cp, atATime, newHandled(), newUnhandled()) // warms the API server up
	var ours, theirs *estate
	for b.Loop() {
		ours, theirs = newHandled(), newUnhandled()
		compete(b, cp, estates, ours, theirs)
	}
	tell(b, ours, theirs)
}

// compete gives each contender n items and lets them take turns. Each of them is first equally often.
func compete(b *testing.B, cp *controlplane.ControlPlane, n int, contenders ...*estate) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), estateLimit)
	defer cancel()
	scheme, err := landscapertest.Scheme()
	must(b, err)
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	must(b, err)
	for _, e := range contenders {
		e.config, e.finished, e.news = cp.Config, map[string]bool{}, make(chan struct{}, 1)
		e.field = field{client: c, ls: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{DeployerType: true})}
		must(b, e.settle(ctx, cp, n))
		must(b, e.start(ctx))
	}
	for leg := range legs {
		for turn := range n / atATime {
			for _, e := range contenders {
				must(b, e.run(ctx, leg, e.items[turn*atATime:(turn+1)*atATime]))
			}
			slices.Reverse(contenders)
		}
	}
	for _, e := range contenders {
		before := heap()
		must(b, e.stop())
		e.stop, e.finished = nil, nil
		e.heap = before - heap()
	}
}

// settle creates the namespace with its Target and the items.
func (e *estate) settle(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	if err := e.plant(ctx, 0); err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	if err != nil {
		return err
	}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	if err := e.client.Create(ctx, target); err != nil {
		return err
	}
	for i := range n {
		e.items = append(e.items, types.NamespacedName{Namespace: e.namespace, Name: fmt.Sprintf("item-%d", i)})
	}
	return e.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		di := e.ls.Item(key.Namespace, key.Name, estateType, estateConfig(0))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		return e.ls.Create(ctx, di) // nothing happens to it without a job
	})
}

// estateConfig is the configuration of all items in a leg.
func estateConfig(leg int) map[string]any {
	values := map[string]string{}
	for i := range perEstate {
		values[fmt.Sprintf("child-%d", i)] = "same"
	}
	if leg == 2 {
		values["child-0"] = "another"
	}
	return map[string]any{"apiVersion": "example.org/v1", "kind": "Estate", "values": values}
}

// run is one turn of a leg: the jobs of some items, from the first that is handed out to the last that finishes.
func (e *estate) run(ctx context.Context, leg int, items []types.NamespacedName) error {
	batch := field{client: e.client, ls: e.ls, namespace: e.namespace, items: items}
	if leg == 2 {
		if err := batch.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
			return e.ls.Update(ctx, key, estateConfig(leg))
		}); err != nil {
			return err
		}
	}
	was, wasOwn := e.target.Snapshot(), e.own.Snapshot()
	began := time.Now()
	if err := batch.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		return e.ls.TriggerAs(ctx, key, jobOf(key.Name, leg))
	}); err != nil {
		return err
	}
	if err := e.await(ctx, leg, items); err != nil {
		return err
	}
	took := time.Since(began)
	e.sum[leg].plus(result{took: took, jobs: len(items), calls: requests(e.target.Snapshot().Since(was)) + requests(e.own.Snapshot().Since(wasOwn))})
	return nil
}

// jobOf names the job of an item in a leg.
func jobOf(item string, leg int) string { return fmt.Sprintf("%s-in-leg-%d", item, leg) }

// await returns when the jobs of the items have finished.
func (e *estate) await(ctx context.Context, leg int, items []types.NamespacedName) error {
	for {
		e.mu.Lock()
		open, err := 0, e.failed
		for _, key := range items {
			if !e.finished[jobOf(key.Name, leg)] {
				open++
			}
		}
		e.mu.Unlock()
		if open == 0 || err != nil {
			return err
		}
		select {
		case <-e.news:
		case <-ctx.Done():
			return fmt.Errorf("%d jobs of %s are not finished: %w", open, e.name, ctx.Err())
		}
	}
}

// note remembers a job that is finished.
func (e *estate) note(di *lsv1alpha1.DeployItem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if job := di.Status.JobIDFinished; job != "" && !e.finished[job] {
		e.finished[job] = true
		if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			e.failed = fmt.Errorf("%s ended %s: %+v", di.Name, di.Status.Phase, di.Status.LastError)
		}
	}
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// requests are those about items and children; what a start costs once is left out.
func requests(counts faultnet.Counts) int {
	total := 0
	for r, n := range counts {
		if r.Verb != "list" && (r.Resource == "deployitems" || r.Resource == "configmaps") {
			total += n
		}
	}
	return total
}

// start starts the contender, which runs until stop, and notes what it finishes.
func (e *estate) start(ctx context.Context) error {
	mgr, err := e.manager(e.own.Wrap(e.config), contenderFunc(func(mgr ctrl.Manager) error { return e.add(mgr, e) }))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = mgr.Start(ctx) })
	e.stop = func() error {
		cancel()
		running.Wait()
		return failed
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &lsv1alpha1.DeployItem{})
	if err != nil {
		return errors.Join(err, e.stop())
	}
	seen := func(obj any) {
		if di, ok := obj.(*lsv1alpha1.DeployItem); ok {
			e.note(di)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }})
	return err
}

type contenderFunc func(mgr ctrl.Manager) error

func (f contenderFunc) add(mgr ctrl.Manager) error { return f(mgr) }

// tell prints the table and reports the numbers to the benchmark.
func tell(b *testing.B, ours, theirs *estate) {
	b.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%d items x %d children\titems/s\tbare\tratio\tcalls/item\tbare\t\n", estates, perEstate)
	for leg, name := range legs {
		o, t := &ours.sum[leg], &theirs.sum[leg]
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t\n", name, o.perSecond(), t.perSecond(), o.perSecond()/t.perSecond(), o.perJob(), t.perJob())
		unit := strings.ReplaceAll(name, " ", "-")
		b.ReportMetric(o.perSecond(), "items/s/"+unit)
		b.ReportMetric(o.perSecond()/t.perSecond(), "ratio/"+unit)
		b.ReportMetric(o.perJob(), "calls/item/"+unit)
	}
	must(b, w.Flush())
	fmt.Fprintf(&text, "memory per item: %d bytes, bare %d\n", ours.heap/estates, theirs.heap/estates)
	b.ReportMetric(float64(ours.heap)/estates, "B/item")
	b.Log(text.String())
}
