// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = world.Patience

// env is the environment of a spec: a world.World with its own deployer. The deployed objects are in the namespace of
// the world.
type env struct {
	*world.World
	options stategraph.Options
	args    func(*deployerlib.DeployerArgs)
	hooks   []extension.ReconcileExtensionHookSetup
}

func newEnv(ctx context.Context, revision contract.Revision) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "stategraph", Landscaper: world.RevisionOf(revision).ToLandscaperOptions()})}
	w.options = stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}
	return w
}

// start runs a deployer with the graph until the spec ends or the manager is stopped.
func (w *env) start(g *stategraph.Graph) *env {
	GinkgoHelper()
	args := stategraph.Args("stategraph.test.deployerkit.dev", w.Type, g, w.options, w.hooks...)
	if w.args != nil {
		w.args(&args)
	}
	w.Start(args)
	return w
}

// newConfig adds apiVersion and kind to a configuration, because every configuration requires them.
func newConfig(config any) map[string]any {
	GinkgoHelper()
	out := map[string]any{}
	raw, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(raw, &out)).To(Succeed())
	if out == nil {
		out = map[string]any{}
	}
	out["apiVersion"], out["kind"] = "graph.test.deployerkit.dev/v1", "Configuration"
	return out
}

// begin creates an item and requests its first run, without waiting.
func (w *env) begin(ctx context.Context, name string, config any, changes ...func(*lsv1alpha1.DeployItem)) {
	GinkgoHelper()
	w.Create(ctx, name, newConfig(config), changes...)
}

// runSuccessfully creates an item and waits until it has succeeded.
func (w *env) runSuccessfully(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.begin(ctx, name, config)
	return w.waitUntilSucceeded(ctx, name)
}

// beginUpdate replaces the configuration of an item and requests a run, without waiting.
func (w *env) beginUpdate(ctx context.Context, name string, config any) {
	GinkgoHelper()
	Expect(w.Landscaper.Update(ctx, w.Key(name), newConfig(config))).To(Succeed())
	_, err := w.Landscaper.Trigger(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
}

// rerunSuccessfully requests another run of an item and waits until it has succeeded.
func (w *env) rerunSuccessfully(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.RunAgain(ctx, name)
	return w.waitUntilSucceeded(ctx, name)
}

// waitUntilSucceeded waits until the job of an item has succeeded.
func (w *env) waitUntilSucceeded(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := w.Finished(ctx, name)
	Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
	return di
}

// status returns a function for Eventually that reads the provider status of an item.
func (w *env) status(ctx context.Context, name string) func(Gomega) *stategraph.ProviderStatus {
	return func(g Gomega) *stategraph.ProviderStatus {
		di := w.ReadItem(ctx, name)(g)
		out := &stategraph.ProviderStatus{}
		if di.Status.ProviderStatus != nil {
			g.Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, out)).To(Succeed())
		}
		return out
	}
}

// hasObject reports whether an object with the given name exists.
func (w *env) hasObject(ctx context.Context, obj client.Object, name string) bool {
	GinkgoHelper()
	err := w.Client.Get(ctx, w.Key(name), obj)
	if apierrors.IsNotFound(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return true
}

// mergePatch returns a JSON merge patch with the given body.
func mergePatch(body map[string]any) client.Patch {
	GinkgoHelper()
	raw, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	return client.RawPatch(types.MergePatchType, raw)
}

// getValue returns a function for Eventually that reads the value of a ConfigMap. The function returns "" if the
// ConfigMap does not exist.
func (w *env) getValue(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		cm := &corev1.ConfigMap{}
		err := w.Client.Get(ctx, w.Key(name), cm)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return cm.Data["value"]
	}
}

// updateValue changes the value of a ConfigMap as a user would.
func (w *env) updateValue(ctx context.Context, name, value string) {
	GinkgoHelper()
	w.UpdateConfigMap(ctx, name, func(cm *corev1.ConfigMap) { cm.Data["value"] = value })
}
