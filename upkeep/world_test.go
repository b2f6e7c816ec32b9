// SPDX-License-Identifier: Apache-2.0

package upkeep

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

// noon is the time at which the fake clocks start.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a keeper with one open target, its own clock, and one item.
type world struct {
	*testing.T
	keeper   *Keeper
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

// landscaper is the cluster with the items.
type landscaper struct {
	cluster.Cluster
	client client.Client
	reader client.Reader // reads from the API server; by default the same as client
}

func (l landscaper) GetClient() client.Client { return l.client }

func (l landscaper) GetAPIReader() client.Reader { return cmp.Or[client.Reader](l.reader, l.client) }

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metav1.AddMetaToScheme, corev1.AddToScheme, lsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(noon), recorder: events.NewFakeRecorder(100), ended: make(chan struct{}), released: make(chan struct{})}
	w.item = &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item", UID: "4f1e"}}
	w.items = fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.item.DeepCopy()).Build()
	w.keeper = New(Options{Name: "test"})
	w.keeper.use(deployerlib.Runtime{
		Clock: w.clock, Recorder: w.recorder, Registerer: prometheus.NewRegistry(), Landscaper: landscaper{client: w.items}, Trigger: w.trigger,
	}, nil)
	w.keeper.scape.uid = "landscape"
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	w.keeper.clusters.ctx = ctx
	t.Cleanup(func() { stop(); w.keeper.clusters.running.Wait() })
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	target := &targets.Client{Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).Build()}
	w.cluster = &Cluster{Client: target, metadata: metadatafake.NewSimpleMetadataClient(scheme), ended: w.ended}
	w.cluster.deletable = func(context.Context) ([]metav1.APIResource, []string, error) { return w.resources, w.missing, nil }
	w.keeper.clusters.start(w.cluster, func() { close(w.released) })
	return w
}

func (w *world) trigger(types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.triggers++
}

// wantTriggers checks how often the library was triggered since the last call.
func (w *world) wantTriggers(want int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.triggers != want {
		w.Errorf("want %d triggers, got %d", want, w.triggers)
	}
	w.triggers = 0
}

// until waits until the function `done` returns true because of another goroutine. The parameter `what` describes the
// expected change in the failure message.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	if wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done(), nil }) != nil {
		w.Fatalf("not in time: %s", what)
	}
}

// begin begins a run of the item. The parameter `background` determines whether it is a background run.
func (w *world) begin(background bool) *Run {
	w.Helper()
	r, err := w.keeper.Begin(w.Context(), w.item, apply.Inventory{}, func(apply.Inventory) error { return nil })
	if err != nil {
		w.Fatal(err)
	}
	r.Cluster, r.background = w.cluster, background
	return r
}

// ask calls the hooks. It reports whether they force a run, and otherwise returns the time until the next call.
func (w *world) ask(hooks extension.ReconcileExtensionHooks) (run bool, later time.Duration) {
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

// wants calls the hooks of the Keeper with the method `ask`, and checks the results.
func (w *world) wants(run bool, later time.Duration) {
	w.Helper()
	gotRun, gotLater := w.ask(w.keeper.Hooks(nil))
	if gotRun != run || gotLater != later {
		w.Errorf("want run %t or again after %s, got run %t, again after %s", run, later, gotRun, gotLater)
	}
}

// drift reports a drift of a ConfigMap. The third drift of the same ConfigMap is a fight.
func (w *world) drift(name string) {
	w.keeper.clusters.drifted(observe.Drift{
		Item: w.item.UID, Object: observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}},
		Reason: observe.DriftReasonChanged, By: []observe.Change{{Manager: "editor", Fields: []string{"data.a"}}},
	})
}

// settled ends a run that has corrected all drifts that it took.
func (w *world) settled(r *Run) {
	w.Helper()
	if err := r.Settle(w.Context(), r.Inventory, apply.Report{}, nil); err != nil {
		w.Error(err)
	}
}
