// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// patience is how long one item may take on a slow machine.
const patience = 90 * time.Second

// tb is what both a spec and a benchmark have.
type tb interface {
	testing.TB
}

// env is a world of a spec or a benchmark. Objects lie in its namespace.
type env struct {
	tb
	*world.World
}

func newEnv(t tb, cp *controlplane.ControlPlane) *env {
	t.Helper()
	return &env{tb: t, World: world.New(t.Context(), t, cp, world.Options{
		Name: "limits", Patience: patience, Landscaper: landscapertest.LandscaperOptions{Poll: 200 * time.Millisecond}, // each read takes a mebibyte
	})}
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(contract.OneLine(err.Error(), 2000))
	}
}

// manifests runs a manifest deployer for the items of the world.
func (w *env) manifests() *landscapertest.Manager {
	w.Helper()
	w.Start(manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}))
	return w.Manager
}

// mocks runs a mock deployer for the items of the world.
func (w *env) mocks() *landscapertest.Manager {
	w.Helper()
	w.Start(mock.Args(nil))
	return w.Manager
}

// deploy creates an item and waits for the end of its first job.
func (w *env) deploy(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	return w.Deploy(w.Context(), name, config)
}

// update gives an item another configuration and waits for the end of its job.
func (w *env) update(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	return w.Update(w.Context(), name, config)
}

// remove deletes an item and waits until it is gone.
func (w *env) remove(name string) {
	w.Helper()
	w.Delete(w.Context(), name)
}

// configMaps is a manifest deployer's configuration of n ConfigMaps with size bytes of data each.
func (w *env) configMaps(n, size int, mark string) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		fmt.Fprintf(&all, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"cm-%d"},"data":{"k":%q}}`,
			w.Namespace, i, mark+strings.Repeat("x", size))
	}
	return `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","manifests":[` + all.String() + `]}`
}

// objects counts the ConfigMaps that belong to items.
func (w *env) objects() int {
	w.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	must(w, w.Client.List(w.Context(), list, client.InNamespace(w.Namespace), client.HasLabels{"deployerkit.dev/item"}))
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
