// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

const (
	benchItems   = 200
	benchObjects = 20
	benchWorkers = 4
)

// requests counts the requests to a target.
type requests struct{ all, writes, objects atomic.Int64 }

func (c *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.all.Add(1)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			c.writes.Add(1)
			if bytes.Contains([]byte(r.URL.Path), []byte("/configmaps")) {
				c.objects.Add(1)
			}
		}
		return next.RoundTrip(r)
	})
}

// reset returns the counts and sets them to zero.
func (c *requests) reset() (all, writes, objects int64) {
	return c.all.Swap(0), c.writes.Swap(0), c.objects.Swap(0)
}

// bench is the environment of a benchmark.
type bench struct {
	*testing.B

	cp         *controlplane.ControlPlane
	client     client.Client
	namespace  string
	landscaper *landscapertest.Landscaper
	counts     requests
	charts     store
}

func newBench(b *testing.B) *bench {
	b.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	plane, err := controlplane.Start(b.Context(), controlplane.Options{})
	e := &bench{B: b, cp: plane}
	e.must(err)
	b.Cleanup(func() { e.must(plane.Stop()) })
	scheme, err := landscapertest.Scheme()
	e.must(err)
	e.client, err = client.New(plane.Config, client.Options{Scheme: scheme})
	e.must(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	e.must(e.client.Create(b.Context(), ns))
	e.namespace = ns.Name
	e.landscaper = landscapertest.NewLandscaper(e.client, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true})
	e.must(e.landscaper.EnsureContext(b.Context(), ns.Name))
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(plane.Kubeconfig())})
	e.must(err)
	e.must(e.client.Create(b.Context(), &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "cluster"},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	}))
	return e
}

func (e *bench) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// start starts the Helm deployer.
func (e *bench) start() {
	e.Helper()
	args := helm.Args(nil, helm.Options{
		Targets: targets.Policy{AllowPrivateHosts: true}, Sources: chart.Sources{OCI: &e.charts}, WrapTransport: e.counts.wrap,
		TargetLimits: targets.Limits{},
	})
	args.Options.MaxConcurrentReconciles = benchWorkers
	landscapertest.StartManager(e, e.cp.Config, args)
}

// configure returns the configuration of an item.
func (e *bench) configure(i int, values map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": fmt.Sprintf("item%d", i), "namespace": e.namespace,
		"chart": map[string]any{"ref": "chart"}, "values": values,
	}
}

func (e *bench) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: e.namespace, Name: fmt.Sprintf("item%d", i)}
}

// create creates the items from..to without a job.
func (e *bench) create(from, to int, values map[string]any) {
	e.Helper()
	e.parallel(from, to, func(ctx context.Context, i int) error {
		di := e.landscaper.Item(e.namespace, e.key(i).Name, helm.Type, e.configure(i, values))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		return e.landscaper.Create(ctx, di)
	})
}

// parallel calls a function for all items from..to, several at the same time.
func (e *bench) parallel(from, to int, f func(ctx context.Context, i int) error) {
	e.Helper()
	group, ctx := errgroup.WithContext(e.Context())
	group.SetLimit(benchWorkers)
	for i := from; i < to; i++ {
		group.Go(func() error { return f(ctx, i) })
	}
	e.must(group.Wait())
}

// runJobs requests a job of each item, and waits until all have succeeded.
func (e *bench) runJobs(from, to int) {
	e.Helper()
	job := fmt.Sprint(time.Now().UnixNano())
	e.parallel(from, to, func(ctx context.Context, i int) error { return e.landscaper.TriggerWithJobID(ctx, e.key(i), job) })
	for deadline := time.Now().Add(20 * time.Minute); ; <-time.After(50 * time.Millisecond) {
		list := &lsv1alpha1.DeployItemList{}
		e.must(e.client.List(e.Context(), list, client.InNamespace(e.namespace)))
		done := 0
		for i := range list.Items {
			status := &list.Items[i].Status
			if status.JobIDFinished != job {
				continue
			}
			if done++; status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
				e.Fatalf("%s: %s %+v", list.Items[i].Name, status.Phase, status.LastError)
			}
		}
		if done == to-from {
			return
		}
		if time.Now().After(deadline) {
			e.Fatalf("only %d of %d jobs have ended", done, to-from)
		}
	}
}

// manyObjects is a chart with many ConfigMaps, one of which contains a value.
func manyObjects() charttest.Files {
	files := charttest.Files{"values.yaml": "color: blue\n"}
	for i := range benchObjects {
		value := "fixed"
		if i == 0 {
			value = "{{ .Values.color }}"
		}
		files[fmt.Sprintf("templates/%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-%d\"}\ndata: {a: \"%s\"}\n", i, value)
	}
	return files
}

// legs are the three jobs of each item.
var legs = []string{"first", "unchanged", "changed"}

// report reports the figures of a leg.
func (e *bench) report(leg string, took time.Duration) {
	all, writes, objects := e.counts.reset()
	e.ReportMetric(benchItems/took.Seconds(), leg+"-jobs/s")
	e.ReportMetric(float64(all)/benchItems, leg+"-calls/job")
	e.ReportMetric(float64(writes)/benchItems, leg+"-writes/job")
	e.ReportMetric(float64(objects)/benchItems, leg+"-objects/job")
}

// BenchmarkHelmJobs compares the deployer with Helm's SDK, called as Landscaper's own Helm deployer calls it: one upgrade
// for each job. Each item has three jobs: the first one, one without a change, and one after a change of one value, which
// changes one of 20 objects. The time of the deployer includes everything that it writes to the items.
func BenchmarkHelmJobs(b *testing.B) {
	b.Run("deployer", func(b *testing.B) {
		e := newBench(b)
		e.charts.charts = map[string]charttest.Files{"chart": manyObjects()}
		e.start()
		for b.Loop() {
			e.create(0, benchItems, map[string]any{"color": "blue"})
			e.counts.reset()
			for _, leg := range legs {
				if leg == "changed" {
					e.parallel(0, benchItems, func(ctx context.Context, i int) error {
						return e.landscaper.Update(ctx, e.key(i), e.configure(i, map[string]any{"color": "red"}))
					})
				}
				start := time.Now()
				e.runJobs(0, benchItems)
				e.report(leg, time.Since(start))
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		e := newBench(b)
		file := filepath.Join(b.TempDir(), "kubeconfig")
		file, err := e.cp.WriteKubeconfig(filepath.Dir(file))
		e.must(err)
		archive := manyObjects().Archive()
		for b.Loop() {
			for _, leg := range legs {
				color := "blue"
				if leg == "changed" {
					color = "red"
				}
				start := time.Now()
				e.parallel(0, benchItems, func(ctx context.Context, i int) error {
					return e.upgrade(ctx, file, archive, fmt.Sprintf("item%d", i), map[string]any{"color": color})
				})
				e.report(leg, time.Since(start))
			}
		}
	})
}

// upgrade installs or upgrades a release with Helm's SDK.
func (e *bench) upgrade(ctx context.Context, kubeconfig string, archive []byte, name string, values map[string]any) error {
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(e.namespace)
	getter := settings.RESTClientGetter()
	if flags, ok := getter.(*genericclioptions.ConfigFlags); ok {
		before := flags.WrapConfigFn
		flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
			if before != nil {
				config = before(config)
			}
			config.Wrap(e.counts.wrap)
			return config
		}
	}
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(getter, e.namespace, "secret"); err != nil {
		return err
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	if _, err := cfg.Releases.Last(name); err != nil {
		install := action.NewInstall(cfg)
		install.ReleaseName, install.Namespace, install.WaitStrategy, install.ServerSideApply = name, e.namespace, kube.HookOnlyStrategy, false
		_, err := install.RunWithContext(ctx, loaded, values)
		return err
	}
	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.ServerSideApply, upgrade.MaxHistory = e.namespace, kube.HookOnlyStrategy, "false", 10
	_, err = upgrade.RunWithContext(ctx, name, loaded, values)
	return err
}

// BenchmarkHelmMemory measures the memory of a release of a chart of 300 KB at rest. It compares the memory of 600 releases
// with that of 100, so that the result does not include what does not depend on the number of releases.
func BenchmarkHelmMemory(b *testing.B) {
	const some, more = 100, 500
	e := newBench(b)
	e.charts.charts = map[string]charttest.Files{"chart": {
		"files/noise.txt": noise(300_000), "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
	}}
	e.start()
	for b.Loop() {
		e.create(0, some, nil)
		e.runJobs(0, some)
		before := heapSize(time.Second)
		e.create(some, some+more, nil)
		e.runJobs(some, some+more)
		b.ReportMetric((float64(heapSize(time.Second))-float64(before))/more, "B/release")
	}
}

// heapSize waits until the heap does not shrink any more, according to several looks with a pause in between, and returns
// its size.
func heapSize(pause time.Duration) uint64 {
	var last uint64
	for same := 0; same < 4; <-time.After(pause) {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if same++; last == 0 || stats.HeapAlloc+stats.HeapAlloc/100 < last {
			same = 0
		}
		last = stats.HeapAlloc
	}
	return last
}
