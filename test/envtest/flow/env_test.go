// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// landscaperManager is the field manager of all writes that the specs make.
const landscaperManager = "landscaper"

// env is the environment of one spec: a namespace with a Context, a deploy item type, a deployer, and the history of
// all items.
type env struct {
	*cluster
	ctx     context.Context
	ns      string
	typ     lsv1alpha1.DeployItemType
	fake    *landscapertest.Fake
	hooks   *landscapertest.Recorder
	ls      *landscapertest.Landscaper
	history *history
}

// begin creates the environment of a spec. It does not start the deployer; the method `run` does this.
func (e *cluster) begin(ctx context.Context) *env {
	GinkgoHelper()
	w := &env{
		cluster: e, ctx: ctx, fake: landscapertest.NewFake(), hooks: &landscapertest.Recorder{},
	}
	w.ls = landscapertest.NewLandscaper(e.client, landscapertest.LandscaperOptions{Revision: e.revision})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "flow-"}}
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.typ = lsv1alpha1.DeployItemType("flow.deployerkit.dev/" + strings.TrimPrefix(ns.Name, "flow-"))
	w.history = w.record()
	w.context(lsv1alpha1.DefaultContextName)
	return w
}

// registerAllHooks registers the recording hook for all hook types.
func (w *env) registerAllHooks() *env {
	w.fake.RegisterHook(w.hooks.NewHook("hook"), extension.AllHookTypes()...)
	return w
}

// setHook sets the behavior of the recording hook for one hook type.
func (w *env) setHook(t extension.HookType, script landscapertest.HookAnswer) *env {
	w.hooks.SetHookAnswer("hook", t, script)
	return w
}

// run starts a manager with the deployer. The manager is stopped at the end of the spec, unless the spec stops it
// earlier.
func (w *env) run(changes ...func(*deployerlib.DeployerArgs)) *landscapertest.Manager {
	GinkgoHelper()
	args := w.args()
	for _, change := range changes {
		change(&args)
	}
	return w.start(args)
}

// args returns the arguments of a deployer with short waits.
func (w *env) args() deployerlib.DeployerArgs {
	return deployerlib.DeployerArgs{
		Name: "flow.deployerkit.dev", Version: "v1", Identity: "flow", Type: w.typ, Deployer: w.fake,
		PollInterval: 50 * time.Millisecond, Backoff: deployerlib.Backoff{Min: 50 * time.Millisecond, Max: 200 * time.Millisecond},
	}
}

// start starts a manager with the given deployers.
func (w *env) start(args deployerlib.DeployerArgs, more ...deployerlib.DeployerArgs) *landscapertest.Manager {
	GinkgoHelper()
	itemTypes := []lsv1alpha1.DeployItemType{args.Type}
	options := []landscapertest.ManagerOption{landscapertest.WithLog(GinkgoLogr)}
	for _, other := range more {
		itemTypes = append(itemTypes, other.Type)
		options = append(options, landscapertest.WithDeployer(other))
	}
	options = append(options, landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.ByObject = deployerlib.CacheByObject(itemTypes...)
	}))
	return landscapertest.StartManager(GinkgoTB(), w.cp.Config, args, options...)
}

// context creates a Context object.
func (w *env) context(name string) {
	GinkgoHelper()
	Expect(w.client.Create(w.ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}})).To(Succeed())
}

// createTarget creates a Target with labels.
func (w *env) createTarget(name string, labels map[string]string) *lsv1alpha1.Target {
	GinkgoHelper()
	t := &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: labels},
		Spec:       lsv1alpha1.TargetSpec{Type: "flow.deployerkit.dev/target", Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`{"a":1}`))},
	}
	Expect(w.client.Create(w.ctx, t)).To(Succeed())
	return t
}

// key returns the key of an item.
func (w *env) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// get reads an item from the API server.
func (w *env) get(name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Expect(w.client.Get(w.ctx, w.key(name), di)).To(Succeed())
	return di
}

// withTimeout returns a context with a timeout, for waits that have no timeout of their own.
func (w *env) withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, 30*time.Second)
}
