// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// patience is how long one item may take on a slow machine.
const patience = 90 * time.Second

// tb is what both a spec and a benchmark have.
type tb interface {
	testing.TB
}

// world is a namespace with a Target. Objects lie in the same namespace.
type world struct {
	tb
	cp      *controlplane.ControlPlane
	client  client.Client
	ls      *landscapertest.Landscaper
	counter *faultnet.Counter // of requests to the target
	ns      string
	kind    lsv1alpha1.DeployItemType
}

func newWorld(t tb, cp *controlplane.ControlPlane) *world {
	t.Helper()
	ctx := t.Context()
	scheme, err := landscapertest.Scheme()
	must(t, err)
	w := &world{tb: t, cp: cp, counter: &faultnet.Counter{}}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	must(t, err)
	ns := &corev1.Namespace{}
	ns.GenerateName = "limits-"
	must(t, w.client.Create(ctx, ns))
	w.ns, w.kind = ns.Name, lsv1alpha1.DeployItemType("limits.deployerkit.dev/"+ns.Name)
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Poll: 200 * time.Millisecond}) // each look takes a mebibyte
	must(t, w.ls.EnsureContext(ctx, w.ns))
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	must(t, err)
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	must(t, w.client.Create(ctx, target))
	return w
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(contract.OneLine(err.Error(), 2000))
	}
}

// manifests runs a manifest deployer for the items of the world.
func (w *world) manifests() *landscapertest.Manager {
	w.Helper()
	return w.start(manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.counter.Transport}))
}

// mocks runs a mock deployer for the items of the world.
func (w *world) mocks() *landscapertest.Manager {
	w.Helper()
	return w.start(mock.Args(nil))
}

func (w *world) start(args deployerlib.DeployerArgs) *landscapertest.Manager {
	w.Helper()
	args.Type = w.kind
	return landscapertest.StartManager(w.tb, w.cp.Config, args)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// deploy creates an item and waits for the end of its first job.
func (w *world) deploy(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	di := w.ls.Item(w.ns, name, w.kind, config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	must(w, w.ls.Deploy(ctx, di))
	di, err := w.ls.AwaitFinished(ctx, w.key(name))
	must(w, err)
	return di
}

// update gives an item another configuration and waits for the end of its job.
func (w *world) update(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	must(w, w.ls.Update(ctx, w.key(name), config))
	job, err := w.ls.Trigger(ctx, w.key(name))
	must(w, err)
	di, err := w.ls.AwaitJob(ctx, w.key(name), job)
	must(w, err)
	return di
}

// remove deletes an item and waits until it is gone.
func (w *world) remove(name string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	must(w, w.ls.Delete(ctx, w.key(name)))
	must(w, w.ls.AwaitGone(ctx, w.key(name)))
}

// configMaps is a manifest deployer's configuration of n ConfigMaps with size bytes of data each.
func (w *world) configMaps(n, size int, mark string) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		fmt.Fprintf(&all, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"cm-%d"},"data":{"k":%q}}`,
			w.ns, i, mark+strings.Repeat("x", size))
	}
	return `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","manifests":[` + all.String() + `]}`
}

// objects counts the ConfigMaps that belong to items.
func (w *world) objects() int {
	w.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	must(w, w.client.List(w.Context(), list, client.InNamespace(w.ns), client.HasLabels{"deployerkit.dev/item"}))
	return len(list.Items)
}

// mockConfig is a configuration of the mock deployer.
func mockConfig(fields string) string {
	return `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration",` + fields + `}`
}

// sizeOf is what an item takes as JSON.
func sizeOf(t tb, di *lsv1alpha1.DeployItem) int {
	t.Helper()
	raw, err := json.Marshal(di)
	must(t, err)
	return len(raw)
}
