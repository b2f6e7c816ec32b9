// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

const graphType lsv1alpha1.DeployItemType = "bench.deployerkit.dev/graph"

// graphWaves are the components of the graph by wave. Each requires all components of the previous wave.
var graphWaves = [][]string{{"base"}, {"left", "middle", "right"}, {"one", "two", "three"}, {"red", "green", "blue"}}

// graphNodes is how many there are.
const graphNodes = 10

// graphContender runs the graph for all items.
type graphContender interface {
	contender
	// target counts the calls for ConfigMaps.
	target() *faultnet.Counter
}

// graphLibrary is the state graph, run by the library.
type graphLibrary struct{ counter faultnet.Counter }

func (l *graphLibrary) target() *faultnet.Counter { return &l.counter }

// add registers the deployer.
func (l *graphLibrary) add(mgr ctrl.Manager) error {
	builder := stategraph.NewGraph()
	var before []string
	for _, wave := range graphWaves {
		for _, component := range wave {
			builder.Add(component, stategraph.Object(graphBody), before...)
		}
		before = wave
	}
	graph, err := builder.Build()
	if err != nil {
		return err
	}
	args := stategraph.Args("bench.deployerkit.dev", graphType, graph, stategraph.Options{
		Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: l.counter.Transport,
	})
	args.Registerer, args.Options.MaxConcurrentReconciles = prometheus.NewRegistry(), workers
	return deployerlib.Add(logr.Discard(), mgr, nil, args)
}

// graphBody is the object of each component.
func graphBody(ctx context.Context) (*corev1.ConfigMap, error) {
	node, err := stategraph.From(ctx)
	if err != nil {
		return nil, err
	}
	return graphObject(node.Item(), node.Component()), nil
}

func graphObject(item *lsv1alpha1.DeployItem, component string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + "-" + component},
		Data:       map[string]string{"component": component, "text": strings.Repeat("x", 200)},
	}
}

// BenchmarkStateGraph runs 500 items of a graph of 10 components with the library, and with a bare loop that sends the
// same calls: first everything is new, then there is nothing to do. They take turns, twice.
func BenchmarkStateGraph(b *testing.B) {
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
	klog.SetLogger(logr.Discard())
	race := func(n int, lanes ...*graphLane) {
		for _, l := range lanes {
			if err := l.run(b.Context(), cp, n); err != nil {
				b.Fatal(err)
			}
		}
	}
	race(items/10, &graphLane{graphContender: &graphLibrary{}}, &graphLane{graphContender: &graphBare{}}) // warms the API server up
	ours, theirs := &graphLane{graphContender: &graphLibrary{}}, &graphLane{graphContender: &graphBare{}}
	for b.Loop() {
		race(items, ours, theirs)
		race(items, theirs, ours)
	}
	reportGraph(b, ours, theirs)
}

// graphLane is one contender with what it took so far: for new items, and for those with nothing to do.
type graphLane struct {
	graphContender

	install, again graphResult
}

type graphResult struct {
	result

	target int // calls
}

func (r *graphResult) String() string {
	return fmt.Sprintf("%.0f\t%.2f\t%.2f\t", r.perSecond(), r.perJob(), float64(r.target)/float64(r.jobs))
}

// run gives the lane n new items.
func (l *graphLane) run(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	f, err := newGraphField(ctx, cp, n)
	if err != nil {
		return err
	}
	for _, leg := range []*graphResult{&l.install, &l.again} {
		before := l.target().Snapshot()
		w, err := f.wave(ctx, cp.Config, l)
		if err != nil {
			return err
		}
		took, err := w.whole(ctx)
		if err != nil {
			return err
		}
		leg.plus(took)
		leg.target += l.target().Snapshot().Since(before).Writes().Total()
		if err := f.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newGraphField makes a namespace with a Target and n items, and its ConfigMaps are the only ones in it.
func newGraphField(ctx context.Context, cp *controlplane.ControlPlane, n int) (*field, error) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return nil, err
	}
	cl, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	f := &field{client: cl, ls: landscapertest.NewLandscaper(cl, landscapertest.LandscaperOptions{})}
	if err := f.plant(ctx, 0); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	if err != nil {
		return nil, err
	}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "cluster"}}
	target.Spec.Type, target.Spec.Configuration = "landscaper.gardener.cloud/kubernetes-cluster", lsv1alpha1.NewAnyJSONPointer(raw)
	if err := cl.Create(ctx, target); err != nil {
		return nil, err
	}
	for i := range n {
		f.items = append(f.items, types.NamespacedName{Namespace: f.namespace, Name: fmt.Sprintf("item-%d", i)})
	}
	return f, f.each(ctx, func(ctx context.Context, key types.NamespacedName) error {
		di := f.ls.Item(key.Namespace, key.Name, graphType, itemConfig)
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		return cl.Create(ctx, di)
	})
}

// check returns an error unless all items succeeded and have their objects.
func (f *field) check(ctx context.Context) error {
	objects, list := &corev1.ConfigMapList{}, &lsv1alpha1.DeployItemList{}
	if err := f.client.List(ctx, objects, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	if got, want := len(objects.Items), len(f.items)*graphNodes; got != want {
		return fmt.Errorf("%d ConfigMaps, want %d", got, want)
	}
	if err := f.client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	for _, di := range list.Items {
		if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			return fmt.Errorf("%s is %s: %v", di.Name, di.Status.Phase, di.Status.GetLastError())
		}
	}
	return nil
}

// reportGraph prints the table and hands the numbers to the benchmark.
func reportGraph(b *testing.B, ours, theirs *graphLane) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%d items x %d components\titems/s\tcalls for the item\twrites to the target\t\n", items, graphNodes)
	fmt.Fprintf(w, "state graph, everything new\t%s\n", &ours.install)
	fmt.Fprintf(w, "bare loop, the same calls\t%s\n", &theirs.install)
	fmt.Fprintf(w, "ratio\t%.2f\t\t\t\n", ours.install.perSecond()/theirs.install.perSecond())
	fmt.Fprintf(w, "state graph, nothing to do\t%s\n", &ours.again)
	fmt.Fprintf(w, "bare loop, all again\t%s\n", &theirs.again)
	fmt.Fprintf(w, "ratio\t%.2f\t\t\t\n", ours.again.perSecond()/theirs.again.perSecond())
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Log(text.String())
	b.ReportMetric(ours.install.perSecond(), "items/s")
	b.ReportMetric(ours.install.perSecond()/theirs.install.perSecond(), "ratio")
	b.ReportMetric(ours.again.perSecond()/theirs.again.perSecond(), "ratio-again")
	b.ReportMetric(ours.again.took.Seconds()*float64(time.Second)/float64(ours.again.jobs*graphNodes), "ns/node-again")
}
