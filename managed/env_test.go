// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// startTime is the time at which the fake clocks start.
var startTime = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// testEnv is a ResourceManager with one open target, its own clock, and one item.
type testEnv struct {
	*testing.T
	manager  *ResourceManager
	clock    *clocktesting.FakeClock
	item     *lsv1alpha1.DeployItem
	items    client.Client // a client for the cluster with the items
	recorder *events.FakeRecorder
	cluster  *Cluster
	// resources and missing are the results of targets.Client.ListDeletableResources.
	resources []metav1.APIResource
	missing   []string
	ended     chan struct{} // closed when the target's client has left the pool
	released  chan struct{} // closed when the cluster has ended
	stop      context.CancelFunc

	mu       sync.Mutex
	triggers int
}

// fakeLandscaper is the cluster with the items.
type fakeLandscaper struct {
	cluster.Cluster
	client client.Client
	reader client.Reader // reads from the API server; by default the same as client
}

func (l fakeLandscaper) GetClient() client.Client { return l.client }

func (l fakeLandscaper) GetAPIReader() client.Reader {
	return cmp.Or[client.Reader](l.reader, l.client)
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metav1.AddMetaToScheme, corev1.AddToScheme, lsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &testEnv{T: t, clock: clocktesting.NewFakeClock(startTime), recorder: events.NewFakeRecorder(100), ended: make(chan struct{}), released: make(chan struct{})}
	w.item = &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item", UID: "4f1e"}}
	w.items = fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.item.DeepCopy()).Build()
	w.manager = New(Options{Name: "test"})
	w.manager.setRuntime(deployerlib.Runtime{
		Clock: w.clock, Recorder: w.recorder, Registerer: prometheus.NewRegistry(), Landscaper: fakeLandscaper{client: w.items}, Trigger: w.countTrigger,
	}, nil)
	w.manager.landscape.uid = "landscape"
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	w.manager.clusters.ctx = ctx
	t.Cleanup(func() { stop(); w.manager.clusters.running.Wait() })
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	target := &targets.Client{Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).Build()}
	w.cluster = &Cluster{Client: target, metadata: metadatafake.NewSimpleMetadataClient(scheme), ended: w.ended}
	w.cluster.listDeletable = func(context.Context) ([]metav1.APIResource, []string, error) { return w.resources, w.missing, nil }
	w.manager.clusters.start(w.cluster, func() { close(w.released) })
	return w
}

func (w *testEnv) countTrigger(types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.triggers++
}

// expectTriggers checks how often the library was triggered since the last call.
func (w *testEnv) expectTriggers(want int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.triggers != want {
		w.Errorf("want %d triggers, got %d", want, w.triggers)
	}
	w.triggers = 0
}

// waitUntil waits until done returns true because of another goroutine. The failure message describes the expected
// change as what.
func (w *testEnv) waitUntil(what string, done func() bool) {
	w.Helper()
	if wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done(), nil }) != nil {
		w.Fatalf("not in time: %s", what)
	}
}

// begin begins a run of the item. If background is true, it is a background run.
func (w *testEnv) begin(background bool) *Run {
	w.Helper()
	r, err := w.manager.Begin(w.Context(), w.item, apply.Inventory{}, func(apply.Inventory) error { return nil })
	if err != nil {
		w.Fatal(err)
	}
	r.Cluster, r.isBackground = w.cluster, background
	return r
}

// runHooks calls the hooks. It reports whether they force a run, and otherwise returns the time until the next call.
func (w *testEnv) runHooks(hooks extension.ReconcileExtensionHooks) (run bool, later time.Duration) {
	w.Helper()
	res, err := hooks.ExecuteHooks(w.Context(), logr.Discard(), w.item, nil, extension.ShouldReconcileHook)
	if err != nil {
		w.Fatal(err)
	}
	if res == nil {
		return false, 0
	}
	return !res.AbortReconcile, res.ReconcileResult.RequeueAfter
}

// expectHookResult calls the hooks of the ResourceManager, and checks the results.
func (w *testEnv) expectHookResult(run bool, later time.Duration) {
	w.Helper()
	gotRun, gotLater := w.runHooks(w.manager.NewHooks(nil))
	if gotRun != run || gotLater != later {
		w.Errorf("want run %t or again after %s, got run %t, again after %s", run, later, gotRun, gotLater)
	}
}

// reportDrift reports a drift of a ConfigMap. The third drift of the same ConfigMap is a fight.
func (w *testEnv) reportDrift(name string) {
	w.manager.clusters.handleDrift(observe.Drift{
		Item: w.item.UID, Object: observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}},
		Reason: observe.DriftReasonChanged, Changes: []observe.Change{{Manager: "editor", Fields: []string{"data.a"}}},
	})
}

// finishRun ends a run that has corrected all drifts that it took.
func (w *testEnv) finishRun(r *Run) {
	w.Helper()
	if err := r.RecordResult(w.Context(), r.Inventory, apply.Report{}, nil); err != nil {
		w.Error(err)
	}
}
