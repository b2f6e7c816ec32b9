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

// patience is the time limit for the run of one item. It is long, because the machine may be slow.
const patience = 90 * time.Second

// tb contains the methods that specs and benchmarks have in common.
type tb interface {
	testing.TB
}

// env is a world.World for a spec or a benchmark. The objects are in the namespace of the world.
type env struct {
	tb
	*world.World
}

func newEnv(t tb, cp *controlplane.ControlPlane) *env {
	t.Helper()
	return &env{tb: t, World: world.New(t.Context(), t, cp, world.Options{
		// The poll interval is long, because each read transfers a mebibyte.
		Name: "limits", Patience: patience, Landscaper: landscapertest.LandscaperOptions{Poll: 200 * time.Millisecond},
	})}
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(contract.OneLine(err.Error(), 2000))
	}
}

// startManifestDeployer starts a manifest deployer for the items of the world.
func (w *env) startManifestDeployer() *landscapertest.Manager {
	w.Helper()
	w.Start(manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}))
	return w.Manager
}

// startMockDeployer starts a mock deployer for the items of the world.
func (w *env) startMockDeployer() *landscapertest.Manager {
	w.Helper()
	w.Start(mock.Args(nil))
	return w.Manager
}

// createAndRun creates an item and waits until its first job has ended.
func (w *env) createAndRun(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	return w.CreateAndRun(w.Context(), name, config)
}

// update replaces the configuration of an item and waits until the next job has ended.
func (w *env) update(name, config string) *lsv1alpha1.DeployItem {
	w.Helper()
	return w.Update(w.Context(), name, config)
}

// remove deletes an item and waits until it no longer exists.
func (w *env) remove(name string) {
	w.Helper()
	w.Delete(w.Context(), name)
}

// configMaps returns a configuration for n ConfigMaps. Each of them contains `size` bytes of data.
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

// objects returns the number of ConfigMaps that belong to items.
func (w *env) objects() int {
	w.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	must(w, w.Client.List(w.Context(), list, client.InNamespace(w.Namespace), client.HasLabels{"deployerkit.dev/item"}))
	return len(list.Items)
}

// newMockConfig returns a configuration of the mock deployer.
func newMockConfig(fields string) string {
	return `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration",` + fields + `}`
}

// sizeOf returns the size of an item as JSON.
func sizeOf(t tb, di *lsv1alpha1.DeployItem) int {
	t.Helper()
	raw, err := json.Marshal(di)
	must(t, err)
	return len(raw)
}
