// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib/deployertest"
	"github.com/deployerkit/deployerkit/test/envtest"
)

const (
	estates     = 1000 // items of BenchmarkDeclarative
	perEstate   = 5    // children of each
	estateType  = "example.org/estate"
	estateLimit = 5 * time.Minute // for one leg
)

// legs are what the items go through: everything is new, nothing changed, one child of each item changed.
var legs = []string{"install", "no-op", "one of 5 changed"}

// estate is a contender with a namespace full of items, each of which wants some ConfigMaps.
type estate struct {
	field

	name   string
	config *rest.Config          // of the control plane
	target *deployertest.Counter // of requests to the target
	own    *deployertest.Counter // of requests about items
	add    func(mgr ctrl.Manager, e *estate) error
	stop   func() error
	best   [3]result // by leg
	heap   uint64    // bytes, of all items, in the end
}

// BenchmarkDeclarative runs 1000 items of 5 ConfigMaps through one handler with 10 workers, and through a bare loop that
// sends the same requests, in turns and twice, in both orders. The better of both counts: what else the machine does makes
// nobody faster.
func BenchmarkDeclarative(b *testing.B) {
	cp, err := envtest.Start(b.Context(), envtest.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	compete(b, cp, estates/10, newHandled(), newUnhandled()) // warms the API server up
	var ours, theirs *estate
	for b.Loop() {
		ours, theirs = newHandled(), newUnhandled()
		compete(b, cp, estates, ours, theirs)
		more, less := newHandled(), newUnhandled()
		compete(b, cp, estates, less, more)
		for leg := range legs {
			ours.best[leg] = faster(ours.best[leg], more.best[leg])
			theirs.best[leg] = faster(theirs.best[leg], less.best[leg])
		}
	}
	tell(b, ours, theirs)
}

func faster(a, b result) result {
	if a.took < b.took {
		return a
	}
	return b
}

// compete gives each contender n items, and lets them take turns.
func compete(b *testing.B, cp *envtest.ControlPlane, n int, contenders ...*estate) {
	b.Helper()
	scheme, err := deployertest.Scheme()
	must(b, err)
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	must(b, err)
	for _, e := range contenders {
		e.config = cp.Config
		e.field = field{client: c, ls: deployertest.NewLandscaper(c, deployertest.LandscaperOptions{})}
		must(b, e.settle(b.Context(), cp, n))
	}
	for leg := range legs {
		for _, e := range contenders {
			must(b, e.run(b.Context(), leg))
		}
	}
	for _, e := range contenders {
		must(b, e.stop())
	}
}

// settle makes the namespace with its Target and the items.
func (e *estate) settle(ctx context.Context, cp *envtest.ControlPlane, n int) error {
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
		return e.client.Create(ctx, di)
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

// run is one leg. Jobs are handed out first; the contender is started before the first leg, and sees later ones as they come.
func (e *estate) run(ctx context.Context, leg int) error {
	ctx, cancel := context.WithTimeout(ctx, estateLimit)
	defer cancel()
	if leg == 2 {
		if err := e.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
			return e.ls.Update(ctx, key, estateConfig(leg))
		}); err != nil {
			return err
		}
	}
	trigger := func() error {
		return e.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
			return e.ls.TriggerAs(ctx, key, jobOf(key.Name, leg))
		})
	}
	begin := trigger
	var before uint64
	if leg == 0 {
		if err := trigger(); err != nil {
			return err
		}
		before, begin = heap(), func() error { return e.start(ctx) }
	}
	was, wasOwn := e.target.Snapshot(), e.own.Snapshot()
	began := time.Now()
	if err := begin(); err != nil {
		return err
	}
	if err := e.awaitJobs(ctx, leg); err != nil {
		return err
	}
	e.best[leg] = result{took: time.Since(began), jobs: len(e.items), calls: requests(e.target.Snapshot().Since(was)) + requests(e.own.Snapshot().Since(wasOwn))}
	if leg == 0 {
		e.heap = heap() - before
	}
	return nil
}

// jobOf names the job of an item in a leg.
func jobOf(item string, leg int) string { return fmt.Sprintf("%s-in-leg-%d", item, leg) }

// awaitJobs watches until the jobs of a leg are finished. A watch that the API server ends is begun again.
func (e *estate) awaitJobs(ctx context.Context, leg int) error {
	finished := map[string]bool{}
	note := func(di *lsv1alpha1.DeployItem) error {
		if di.Status.JobIDFinished != jobOf(di.Name, leg) {
			return nil
		}
		if finished[di.Name] = true; di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			return fmt.Errorf("%s ended %s: %+v", di.Name, di.Status.Phase, di.Status.LastError)
		}
		return nil
	}
	for len(finished) < len(e.items) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d of %d jobs of %s finished: %w", len(finished), len(e.items), e.name, err)
		}
		list := &lsv1alpha1.DeployItemList{}
		if err := e.client.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if err := note(&list.Items[i]); err != nil {
				return err
			}
		}
		w, err := e.client.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(e.namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return err
		}
		for len(finished) < len(e.items) {
			event, open := <-w.ResultChan()
			di, ok := event.Object.(*lsv1alpha1.DeployItem)
			if !open || !ok {
				break
			}
			if err := note(di); err != nil {
				return err
			}
		}
		w.Stop()
	}
	return nil
}

// requests are those about items and children; what a start costs once is left out.
func requests(counts deployertest.Counts) int {
	total := 0
	for r, n := range counts {
		if r.Verb != "list" && (r.Resource == "deployitems" || r.Resource == "configmaps") {
			total += n
		}
	}
	return total
}

// start starts the contender, which runs until stop.
func (e *estate) start(ctx context.Context) error {
	mgr, err := e.manager(e.own.Wrap(e.config), contenderFunc(func(mgr ctrl.Manager) error { return e.add(mgr, e) }))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = mgr.Start(ctx) })
	e.stop = func() error {
		cancel()
		running.Wait()
		return failed
	}
	return nil
}

type contenderFunc func(mgr ctrl.Manager) error

func (f contenderFunc) add(mgr ctrl.Manager) error { return f(mgr) }

// tell prints the table and hands the numbers to the benchmark.
func tell(b *testing.B, ours, theirs *estate) {
	b.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%d items x %d children\titems/s\tbare\tratio\tcalls/item\tbare\t\n", estates, perEstate)
	for leg, name := range legs {
		o, t := &ours.best[leg], &theirs.best[leg]
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
