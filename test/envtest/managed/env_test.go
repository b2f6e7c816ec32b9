// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"encoding/json"
	"sync/atomic"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = world.Patience

// quiet is the time during which nothing may happen.
const quiet = "500ms"

// managedDeployer is a deployer that deploys a ConfigMap for each item, and counts its background runs.
type managedDeployer struct {
	deployerlib.Base
	manager *managed.ResourceManager

	runs    atomic.Int32
	during  atomic.Pointer[func(ctx context.Context, di *lsv1alpha1.DeployItem) error] // function that each run calls
	cluster atomic.Pointer[managed.Cluster]
}

func (d *managedDeployer) UseRuntime(rt deployerlib.Runtime) error { return d.manager.UseRuntime(rt) }

func (d *managedDeployer) ExtensionHooks() extension.ReconcileExtensionHooks {
	return d.manager.NewHooks(nil)
}

type status struct {
	Inventory apply.Inventory `json:"inventory"`
}

func (d *managedDeployer) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*managed.Run, error) {
	last := status{}
	if stored := di.Status.ProviderStatus; stored != nil {
		if err := json.Unmarshal(stored.Raw, &last); err != nil {
			return nil, err
		}
	}
	return d.manager.Begin(ctx, di, last.Inventory, func(inventory apply.Inventory) error {
		return deployerlib.SetProviderStatus(di, status{Inventory: inventory}, schema.GroupVersionKind{Group: "test.deployerkit.dev", Version: "v1", Kind: "Status"})
	})
}

func (d *managedDeployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) (err error) {
	phase := deployerlib.StoredPhase(ctx)
	if phase.IsFinal() {
		d.runs.Add(1)
	}
	defer func() { GinkgoWriter.Println("run of an item in phase", phase, "returned:", err) }()
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	d.cluster.Store(r.Cluster)
	r.TakeTriggers()
	if during := d.during.Load(); during != nil {
		if err := (*during)(ctx, di); err != nil {
			r.ReturnTriggers()
			return err
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": di.Namespace, "name": di.Name}, "data": map[string]any{"a": "b"},
	}}
	if _, err := r.Apply(ctx, []apply.Desired{{Object: object}}, apply.Options{}); err != nil {
		return err
	}
	if err := r.CheckAllReady(ctx, 0); err != nil {
		return err
	}
	r.Finish()
	return nil
}

func (d *managedDeployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.Delete(ctx, apply.Options{}, nil, 0)
}

func (d *managedDeployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	return r.StartWatches(ctx, target)
}

// env is the environment of a spec: a world.World with a running deployer and a finished item "a".
type env struct {
	*world.World
	*managedDeployer
	key types.NamespacedName
	uid types.UID
}

func newEnv(ctx context.Context) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "managed"})}
	w.key = w.Key("a")
	w.start()
	finished := w.CreateAndRun(ctx, "a", map[string]any{"apiVersion": "test.deployerkit.dev/v1", "kind": "Config"})
	Expect(finished.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", finished.Status.LastError)
	w.uid = finished.UID
	w.isQuietAfter(0)
	return w
}

// start starts a new deployer. The new deployer knows nothing from earlier runs.
func (w *env) start() {
	GinkgoHelper()
	w.managedDeployer = &managedDeployer{manager: managed.New(managed.Options{Name: "test", Targets: targets.Policy{AllowPrivateHosts: true}})}
	w.Start(deployerlib.DeployerArgs{Name: "test.deployerkit.dev", Deployer: w.managedDeployer})
}

// isQuietAfter waits until the given number of background runs have ended. It requires that no more runs follow.
func (w *env) isQuietAfter(runs int32) {
	GinkgoHelper()
	Eventually(w.runs.Load).WithTimeout(patience).Should(BeNumerically(">=", runs))
	Consistently(w.runs.Load, quiet).Should(Equal(runs))
}

// setRunFunc sets a function that each run calls. When it is called, the run has already consumed its triggers.
func (w *env) setRunFunc(f func(ctx context.Context, di *lsv1alpha1.DeployItem) error) {
	w.during.Store(&f)
}

// data returns the data in the ConfigMap of the item.
func (w *env) data(ctx context.Context) map[string]string {
	cm := &corev1.ConfigMap{}
	if w.Client.Get(ctx, w.key, cm) != nil {
		return nil
	}
	return cm.Data
}

// updateObject changes the ConfigMap as a user would.
func (w *env) updateObject(ctx context.Context) {
	GinkgoHelper()
	w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"a": "by hand"} })
}

func (w *env) finished(ctx context.Context) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.Finished(ctx, "a")
}
