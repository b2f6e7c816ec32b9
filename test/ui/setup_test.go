// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	uicommand "github.com/deployerkit/deployerkit/cmd/deployerkit/ui"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/history"
	pageserver "github.com/deployerkit/deployerkit/internal/ui"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

const (
	namespace  = "shop"
	targetName = "workload"
	galeraType = "example.org/galera"
)

// world is a control plane with deployers and the page.
type world struct {
	t      *testing.T
	client client.Client
	ls     *landscapertest.Landscaper
	config *rest.Config
	page   uicommand.Options
	url    string

	mu sync.Mutex
	// writes are the requests of the page that could have changed the cluster.
	writes []string
	// databaseReady makes the Pods of the database ready.
	databaseReady bool
}

// newWorld starts a control plane, deployers and the page.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true})
	must(t, err)
	t.Cleanup(func() { must(t, cp.Stop()) })
	cp.Config.QPS = -1
	scheme, err := landscapertest.Scheme()
	must(t, err)
	c, err := client.New(cp.Config, client.Options{Scheme: scheme})
	must(t, err)
	w := &world{t: t, client: c, ls: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID})}
	w.createNamespace(namespace)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "database"}})
	raw, err := json.Marshal(map[string]string{"kubeconfig": string(cp.Kubeconfig())})
	must(t, err)
	w.create(&lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: targetName},
		Spec:       lsv1alpha1.TargetSpec{Type: "landscaper.gardener.cloud/kubernetes-cluster", Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	})
	w.startKubelet(cp.Config)
	stores := w.startDeployers(cp.Config)
	w.config = cp.Config
	w.page = uicommand.Options{
		Address: "127.0.0.1:0", Manifest: manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}},
		Page: pageserver.Options{Config: w.config, History: func(_ context.Context, item types.NamespacedName) ([]history.Reconcile, error) {
			for _, store := range stores {
				if list := store.Get(item); len(list) > 0 {
					return list, nil
				}
			}
			return nil, nil
		}},
	}
	w.url, _ = w.startPage(w.page)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	must(w.t, w.client.Create(w.t.Context(), obj))
}

// setStatus merges fields into the status of an object.
func (w *world) setStatus(obj client.Object, status map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"status": status})
	must(w.t, err)
	must(w.t, w.client.Status().Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, raw)))
}

// createNamespace creates a namespace with a Context.
func (w *world) createNamespace(name string) {
	w.t.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	must(w.t, w.ls.EnsureContext(w.t.Context(), name))
}

// startKubelet makes Pods ready, because the control plane has no nodes.
func (w *world) startKubelet(cfg *rest.Config) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}})
	must(w.t, err)
	must(w.t, controlplane.AddKubelet(mgr, func(pod *corev1.Pod) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.databaseReady || pod.Namespace != "database"
	}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the kubelet ended: %v", err)
		}
	})
}

// startDeployers starts the mock deployer, the manifest deployer and the Galera example. It returns their histories.
func (w *world) startDeployers(cfg *rest.Config) []*history.Store {
	w.t.Helper()
	graph, err := galera.BuildGraph()
	must(w.t, err)
	policy := targets.Policy{AllowPrivateHosts: true}
	all := []deployerlib.DeployerArgs{
		mock.Args(nil), manifest.Args(nil, manifest.Options{Targets: policy}),
		stategraph.Args("galera.example.org", galeraType, graph, stategraph.Options{Targets: policy}),
	}
	var stores []*history.Store
	for i := range all {
		all[i].PollInterval, all[i].History = 300*time.Millisecond, history.NewStore(0)
		stores = append(stores, all[i].History)
		w.createLease(all[i])
	}
	landscapertest.StartManager(w.t, cfg, all[0], landscapertest.WithDeployer(all[1]), landscapertest.WithDeployer(all[2]))
	return stores
}

// createLease creates the lease that a program with deployermain would have.
func (w *world) createLease(args deployerlib.DeployerArgs) {
	w.t.Helper()
	name := strings.ReplaceAll(args.Name, "/", "-")
	r := registration.Registration{Name: args.Name, Type: string(args.Type), Version: "v0.9.0"}
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{registration.Label: "true"}, Annotations: map[string]string{registration.Annotation: r.Encode()},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new(name + "-0"), LeaseDurationSeconds: new(int32(600)), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	})
}

// setHolder sets the holder of a lease.
func (w *world) setHolder(name string, holder *string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{}
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, lease))
	before := lease.DeepCopy()
	lease.Spec.HolderIdentity = holder
	must(w.t, w.client.Patch(w.t.Context(), lease, client.MergeFrom(before)))
}

// startPage serves a page. It returns the address of the page and a function that ends it, which also runs after the test.
func (w *world) startPage(o uicommand.Options) (url string, end func()) {
	w.t.Helper()
	o.Page.Config = rest.CopyConfig(o.Page.Config)
	o.Page.Config.Wrap(w.recordWrites)
	page, stop, err := uicommand.Listen(o)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- page.Serve(ctx) }()
	t := w.t
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the page ended: %v", err)
		}
		stop()
	})
	t.Cleanup(end)
	return strings.TrimSuffix(page.URL, "/"), end
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// recordWrites returns a transport that records requests of the page that are neither reads nor dry runs.
func (w *world) recordWrites(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodGet && req.URL.Query().Get("dryRun") != "All" {
			w.mu.Lock()
			w.writes = append(w.writes, req.Method+" "+req.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

// deploy creates an item and requests its first run.
func (w *world) deploy(name string, itemType lsv1alpha1.DeployItemType, config any, changes ...func(*lsv1alpha1.DeployItem)) {
	w.t.Helper()
	di := w.ls.Item(namespace, name, itemType, config)
	if itemType != mock.Type {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: targetName}
	}
	for _, change := range changes {
		change(di)
	}
	must(w.t, w.ls.Deploy(w.t.Context(), di))
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// newManifests returns the configuration of an item with a ConfigMap and a Secret.
func newManifests(name, color string) map[string]any {
	object := func(kind string, data map[string]any) map[string]any {
		body := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}
		maps.Copy(body, data)
		return map[string]any{"manifest": body}
	}
	return map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{
			object("ConfigMap", map[string]any{"data": map[string]any{"color": color}}),
			object("Secret", map[string]any{"stringData": map[string]any{"password": "hunter2-" + color}}),
		},
	}
}

// newMock returns the configuration of an item of the mock deployer that ends in the given phase.
func newMock(phase string) map[string]any {
	return map[string]any{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": phase}
}
