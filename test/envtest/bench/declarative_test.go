// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

const (
	itemCount          = 1000 // number of items in BenchmarkDeclarative
	itemsPerTurn       = 50   // number of items in one turn of a contender
	childrenPerItem    = 5    // number of children of each item
	competitorType     = "example.org/estate"
	competitionTimeout = 20 * time.Minute // time limit of the whole benchmark
	changedLeg         = 2                // the leg in which one child of each item changes
)

// legs are the steps of the benchmark. In the first step, all children are new. In the second step, nothing has
// changed. In the third step, one child of each item has changed.
var legs = []string{"install", "no-op", "one of 5 changed"}

// competitor is one competitor in the benchmark, together with the namespace that contains its items. Each item
// describes some ConfigMaps.
type competitor struct {
	itemSet

	name     string
	workers  int
	children int // number of children of each item
	kind     lsv1alpha1.DeployItemType
	config   *rest.Config      // config for the control plane
	target   *faultnet.Counter // counter of the requests to the target, or nil
	own      *faultnet.Counter // counter of the requests about items, or nil
	add      func(mgr ctrl.Manager, e *competitor) error
	stop     func() error
	laps     [3][]result // results of the turns in each leg

	mu       sync.Mutex
	finished map[string]bool // IDs of the jobs that have finished
	news     chan struct{}
	failed   error
}

// BenchmarkDeclarative deploys 1000 items of 5 ConfigMaps in two ways: with one handler and 10 workers, and with a
// hand-written loop that sends the same requests. The two contenders alternate after every 50 items, so that other load
// on the machine affects both.
func BenchmarkDeclarative(b *testing.B) {
	cp := race.StartControlPlane(b)
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	runContenders(b, cp, legs, itemsPerTurn, newHandled(), newUnhandled()) // a warm-up, which is not measured
	var ours, theirs *competitor
	for b.Loop() {
		ours, theirs = newHandled(), newUnhandled()
		runContenders(b, cp, legs, itemCount, ours, theirs)
	}
	printResults(b, legs, ours, theirs)
}

// runContenders creates n items for each contender, and lets the contenders process their items in turns. The order of
// the contenders is reversed after each turn, so that no contender has an advantage.
func runContenders(b *testing.B, cp *controlplane.ControlPlane, legs []string, n int, contenders ...*competitor) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), competitionTimeout)
	defer cancel()
	for _, e := range contenders {
		must(b, e.createAndStart(ctx, cp, n))
	}
	for leg := range legs {
		for turn := range n / itemsPerTurn {
			for _, e := range contenders {
				lap, err := e.run(ctx, leg, e.items[turn*itemsPerTurn:(turn+1)*itemsPerTurn])
				must(b, err)
				e.laps[leg] = append(e.laps[leg], lap)
			}
			slices.Reverse(contenders)
		}
	}
	for _, e := range contenders {
		must(b, e.stop())
	}
}

// createAndStart creates n items in a namespace of their own, and starts the contender.
func (e *competitor) createAndStart(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	e.config, e.finished, e.news = cp.Config, map[string]bool{}, make(chan struct{}, 1)
	e.workers, e.children = cmp.Or(e.workers, workers), cmp.Or(e.children, childrenPerItem)
	e.itemSet = itemSet{client: c, ls: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{DeployerType: true})}
	if err := e.createTargetAndItems(ctx, cp, n); err != nil {
		return err
	}
	return e.start(ctx)
}

// createTargetAndItems creates the namespace of the contender, a Target, and the items.
func (e *competitor) createTargetAndItems(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	if err := e.createItems(ctx, 0); err != nil {
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
	return e.create(ctx, n)
}

// create creates n more items.
func (e *competitor) create(ctx context.Context, n int) error {
	more := itemSet{client: e.client, ls: e.ls, namespace: e.namespace}
	for i := range n {
		more.items = append(more.items, types.NamespacedName{Namespace: e.namespace, Name: fmt.Sprintf("item-%d", len(e.items)+i)})
	}
	e.items = append(e.items, more.items...)
	return more.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		di := e.ls.Item(key.Namespace, key.Name, e.kind, e.newSpec(0))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		return e.ls.Create(ctx, di) // without a job, no deployer processes the item
	})
}

// newSpec returns the configuration of every item in a leg.
func (e *competitor) newSpec(leg int) map[string]any {
	values := map[string]string{}
	for i := range e.children {
		values[fmt.Sprintf("child-%d", i)] = "same"
	}
	if leg == changedLeg {
		values["child-0"] = "another"
	}
	return map[string]any{"apiVersion": "example.org/v1", "kind": "Estate", "values": values}
}

// run runs one turn of a leg. It starts a job for each of the given items, and measures the time from the start of the
// first job to the end of the last one.
func (e *competitor) run(ctx context.Context, leg int, items []types.NamespacedName) (result, error) {
	if leg == changedLeg {
		batch := itemSet{client: e.client, ls: e.ls, namespace: e.namespace, items: items}
		if err := batch.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
			return e.ls.Update(ctx, key, e.newSpec(leg))
		}); err != nil {
			return result{}, err
		}
	}
	was, wasOwn := e.target.Snapshot(), e.own.Snapshot()
	began := time.Now()
	if err := e.runJobs(ctx, leg, items); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	return result{took: took, jobs: len(items), calls: sumRequests(e.target.Snapshot().Since(was)) + sumRequests(e.own.Snapshot().Since(wasOwn))}, nil
}

// runJobs starts a job for each of the given items, and waits until the jobs have finished.
func (e *competitor) runJobs(ctx context.Context, leg int, items []types.NamespacedName) error {
	batch := itemSet{client: e.client, ls: e.ls, namespace: e.namespace, items: items}
	if err := batch.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		return e.ls.TriggerWithJobID(ctx, key, getJobID(key.Name, leg))
	}); err != nil {
		return err
	}
	return e.waitForJobs(ctx, leg, items)
}

// getJobID returns the ID of the job of an item in a leg.
func getJobID(item string, leg int) string { return fmt.Sprintf("%s-in-leg-%d", item, leg) }

// waitForJobs waits until the jobs of the items have finished.
func (e *competitor) waitForJobs(ctx context.Context, leg int, items []types.NamespacedName) error {
	for {
		e.mu.Lock()
		open, err := 0, e.failed
		for _, key := range items {
			if !e.finished[getJobID(key.Name, leg)] {
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

// recordJob records the job of an item if the job has finished.
func (e *competitor) recordJob(di *lsv1alpha1.DeployItem) {
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

// sumRequests returns the number of requests about items and children. It does not count lists, which are sent once
// when a contender starts.
func sumRequests(counts faultnet.Counts) int {
	total := 0
	for r, n := range counts {
		if r.Verb != "list" && (r.Resource == "deployitems" || r.Resource == "configmaps") {
			total += n
		}
	}
	return total
}

// start starts the contender and records the jobs that finish. The contender runs until the function `stop` is called.
func (e *competitor) start(ctx context.Context) error {
	mgr, err := e.newManager(withCounter(e.own, e.config), e.kind, contenderFunc(func(mgr ctrl.Manager) error { return e.add(mgr, e) }))
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
			e.recordJob(di)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }})
	return err
}

// withCounter returns a config whose requests the counter counts. The counter may be nil.
func withCounter(c *faultnet.Counter, config *rest.Config) *rest.Config {
	if c == nil {
		return config
	}
	return c.Wrap(config)
}

// wrapTarget makes a transport to the target count its requests.
func (e *competitor) wrapTarget(next http.RoundTripper) http.RoundTripper {
	if e.target == nil {
		return next
	}
	return e.target.Transport(next)
}

type contenderFunc func(mgr ctrl.Manager) error

func (f contenderFunc) add(mgr ctrl.Manager) error { return f(mgr) }

// printResults logs and reports the results of two contenders. The items per second are those of the median turn. The
// ratio is the median of the ratios of the turns, each of which is compared with the other contender's turn next to it.
// A turn that is slow for another reason, such as a garbage collection of the API server, does not change these
// figures.
func printResults(b *testing.B, legs []string, ours, theirs *competitor) {
	b.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%d items\titems/s\tbare\tratio\tcalls/item\tbare\t\n", len(ours.items))
	for leg, name := range legs {
		o, t := getSpeeds(ours.laps[leg]), getSpeeds(theirs.laps[leg])
		ratios := make([]float64, len(o))
		for turn := range o {
			ratios[turn] = o[turn] / t[turn]
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t\n", name, race.Median(o), race.Median(t), race.Median(ratios), getCallsPerItem(ours.laps[leg]), getCallsPerItem(theirs.laps[leg]))
		b.ReportMetric(race.Median(ratios), race.Unit(ours.name, name, "ratio"))
		for _, c := range []*competitor{ours, theirs} {
			b.ReportMetric(race.Median(getSpeeds(c.laps[leg])), race.Unit(c.name, name, "items/s"))
			b.ReportMetric(getCallsPerItem(c.laps[leg]), race.Unit(c.name, name, "calls/item"))
		}
	}
	b.ReportMetric(0, "ns/op") // the duration of both contenders says nothing
	must(b, w.Flush())
	b.Log(text.String())
}

// getSpeeds returns the items per second of each turn.
func getSpeeds(laps []result) []float64 {
	speeds := make([]float64, len(laps))
	for turn := range laps {
		speeds[turn] = laps[turn].perSecond()
	}
	return speeds
}

// getCallsPerItem returns the calls per item over all turns.
func getCallsPerItem(laps []result) float64 {
	var sum result
	for _, lap := range laps {
		sum.add(lap)
	}
	return sum.perJob()
}
