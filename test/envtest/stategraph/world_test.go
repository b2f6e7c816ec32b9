// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is how long anything may take on a slow machine.
const patience = 30 * time.Second

// world is a namespace with a Target and a deployer of its own. The objects lie in the same namespace.
type world struct {
	client  client.Client
	ls      *landscapertest.Landscaper
	counter *faultnet.Counter // of requests to the target
	mgr     *landscapertest.Manager
	options stategraph.Options
	args    func(*deployerlib.DeployerArgs)
	hooks   []extension.ReconcileExtensionHookSetup
	ns      string
}

func newWorld(ctx context.Context, revision contract.Revision) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w := &world{counter: &faultnet.Counter{}}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{}
	ns.GenerateName = "graph-"
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: revision, DeployerType: revision == contract.JobID})
	Expect(w.ls.EnsureContext(ctx, w.ns)).To(Succeed())
	w.target(ctx, "cluster", cp.Kubeconfig())
	w.options = stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.counter.Transport}
	return w
}

// target creates a Target of a kubeconfig.
func (w *world) target(ctx context.Context, name string, kubeconfig []byte) {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	Expect(err).NotTo(HaveOccurred())
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(w.client.Create(ctx, target)).To(Succeed())
}

// start runs a deployer of the graph until the spec ends, or stop is called.
func (w *world) start(g *stategraph.Graph) *world {
	GinkgoHelper()
	args := stategraph.Args("stategraph.test.deployerkit.dev", w.kind(), g, w.options, w.hooks...)
	if w.args != nil {
		w.args(&args)
	}
	w.mgr = landscapertest.StartManager(GinkgoTB(), cp.Config, args)
	return w
}

// kind is an item type of the namespace's own, so that the deployers of other specs leave its items alone.
func (w *world) kind() lsv1alpha1.DeployItemType {
	return lsv1alpha1.DeployItemType("stategraph.deployerkit.dev/" + w.ns)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// begin creates an item and asks for its first run.
func (w *world) begin(ctx context.Context, name string, config any, change ...func(*lsv1alpha1.DeployItem)) {
	GinkgoHelper()
	di := w.ls.Item(w.ns, name, w.kind(), configured(config))
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	for _, f := range change {
		f(di)
	}
	Expect(w.ls.Deploy(ctx, di)).To(Succeed())
}

// configured is a configuration with apiVersion and kind, which each needs.
func configured(config any) map[string]any {
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

// deploy creates an item and waits until it succeeded.
func (w *world) deploy(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.begin(ctx, name, config)
	return w.succeeded(ctx, name)
}

// again hands out another job and waits until it succeeded.
func (w *world) again(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	_, err := w.ls.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return w.succeeded(ctx, name)
}

// succeeded waits for the end of an item's job.
func (w *world) succeeded(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.ls.AwaitFinished(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%+v", di.Status.LastError)
	return di
}

// item reads an item for Eventually.
func (w *world) item(ctx context.Context, name string) func(Gomega) *lsv1alpha1.DeployItem {
	return func(g Gomega) *lsv1alpha1.DeployItem {
		di, err := w.ls.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		return di
	}
}

// status reads what the deployer keeps about an item.
func (w *world) status(ctx context.Context, name string) func(Gomega) *stategraph.ProviderStatus {
	return func(g Gomega) *stategraph.ProviderStatus {
		di := w.item(ctx, name)(g)
		out := &stategraph.ProviderStatus{}
		if di.Status.ProviderStatus != nil {
			g.Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, out)).To(Succeed())
		}
		return out
	}
}

// exists asks for an object by name.
func (w *world) exists(ctx context.Context, obj client.Object, name string) bool {
	GinkgoHelper()
	err := w.client.Get(ctx, w.key(name), obj)
	if apierrors.IsNotFound(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return true
}

// spent are the requests to the target since a snapshot.
func (w *world) spent(before faultnet.Counts) (reads, writes int) {
	got := w.counter.Snapshot().Since(before)
	return got.Reads().Total(), got.Writes().Total()
}

// mergePatch is a JSON merge patch.
func mergePatch(body map[string]any) client.Patch {
	GinkgoHelper()
	raw, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	return client.RawPatch(types.MergePatchType, raw)
}

// value reads the value of a ConfigMap, for Eventually; "" when it does not exist.
func (w *world) value(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		cm := &corev1.ConfigMap{}
		err := w.client.Get(ctx, w.key(name), cm)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return cm.Data["value"]
	}
}

// edit changes the value of a ConfigMap by hand.
func (w *world) edit(ctx context.Context, name, value string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.client.Get(ctx, w.key(name), cm)).To(Succeed())
	cm.Data["value"] = value
	Expect(w.client.Update(ctx, cm, client.FieldOwner("kubectl-edit"))).To(Succeed())
}

// quiet waits until the deployer asks nothing of the target any more.
func (w *world) quiet(ctx context.Context) {
	GinkgoHelper()
	last, since := w.counter.Snapshot(), time.Now()
	Eventually(func() bool {
		now := w.counter.Snapshot()
		if now.Since(last).Total() > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	}).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
}
