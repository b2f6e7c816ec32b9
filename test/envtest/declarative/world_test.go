// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is how long anything may take on a slow machine.
const patience = 30 * time.Second

// world is a namespace with a Target and a declarative deployer of its own. The children lie in the same namespace.
type world struct {
	client  client.Client
	ls      *landscapertest.Landscaper
	counter *faultnet.Counter // of requests to the target
	mgr     *landscapertest.Manager
	options declarative.Options
	ns      string
	workers int // 0: the default
}

func newWorld(ctx context.Context, kinds ...declarative.ChildKind) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w := &world{counter: &faultnet.Counter{}}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{}
	ns.GenerateName = "declarative-"
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: contract.JobID, ManagedBy: "exec"})
	Expect(w.ls.EnsureContext(ctx, w.ns)).To(Succeed())
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	Expect(err).NotTo(HaveOccurred())
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(w.client.Create(ctx, target)).To(Succeed())
	w.options = declarative.Options{
		Children: kinds, MinInterval: 100 * time.Millisecond,
		Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.counter.Transport,
	}
	return w
}

// start runs a deployer of the handler until the spec ends, or stop is called.
func (w *world) start(handler declarative.Handler, hooks ...extension.ReconcileExtensionHookSetup) *world {
	GinkgoHelper()
	args := declarative.Args("echo.deployer.example.com", w.kind(), handler, w.options, hooks...)
	args.Backoff.Max = time.Second
	args.Options.MaxConcurrentReconciles = w.workers
	w.mgr = landscapertest.StartManager(GinkgoTB(), cp.Config, args)
	return w
}

// kind is an item type of the namespace's own, so that the deployers of other specs leave its items alone.
func (w *world) kind() lsv1alpha1.DeployItemType {
	return lsv1alpha1.DeployItemType("declarative.deployerkit.dev/" + w.ns)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// create creates an item and asks for its first run.
func (w *world) create(ctx context.Context, name string, config any) {
	GinkgoHelper()
	di := w.ls.Item(w.ns, name, w.kind(), config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	Expect(w.ls.Deploy(ctx, di)).To(Succeed())
}

// deploy creates an item and waits for the end of its first run.
func (w *world) deploy(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.create(ctx, name, config)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.ls.AwaitFinished(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// again hands out another job and waits for its end.
func (w *world) again(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	job, err := w.ls.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.ls.AwaitJob(ctx, w.key(name), job)
	Expect(err).NotTo(HaveOccurred())
	return di
}

// update changes the configuration and runs it.
func (w *world) update(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	Expect(w.ls.Update(ctx, w.key(name), config)).To(Succeed())
	return w.again(ctx, name)
}

// delete deletes an item and waits until it is gone.
func (w *world) delete(ctx context.Context, name string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(w.ls.Delete(ctx, w.key(name))).To(Succeed())
}

// get reads the item.
func (w *world) get(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.ls.Get(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// status polls the handler's status of an item.
func (w *world) status(ctx context.Context, name string) func(Gomega) map[string]any {
	return func(g Gomega) map[string]any {
		di, err := w.ls.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		out := map[string]any{}
		if di.Status.ProviderStatus != nil {
			g.Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, &out)).To(Succeed())
		}
		return out
	}
}

// condition polls a condition of an item; nil when it is not there.
func (w *world) condition(ctx context.Context, name string, t lsv1alpha1.ConditionType) func(Gomega) *lsv1alpha1.Condition {
	return func(g Gomega) *lsv1alpha1.Condition {
		di, err := w.ls.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		return contract.GetCondition(di.Status.Conditions, t)
	}
}

// data polls a ConfigMap of the target; nil when it is gone.
func (w *world) data(ctx context.Context, name string) func(Gomega) *corev1.ConfigMap {
	return func(g Gomega) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		err := w.client.Get(ctx, w.key(name), cm)
		if apierrors.IsNotFound(err) {
			return nil
		}
		g.Expect(err).NotTo(HaveOccurred())
		return cm
	}
}

// read is data without a poll around it.
func (w *world) read(ctx context.Context, name string) *corev1.ConfigMap {
	GinkgoHelper()
	return w.data(ctx, name)(NewGomega(Fail))
}

// edit changes a ConfigMap by hand.
func (w *world) edit(ctx context.Context, name string, change func(*corev1.ConfigMap)) {
	GinkgoHelper()
	cm := w.read(ctx, name)
	change(cm)
	Expect(w.client.Update(ctx, cm, client.FieldOwner("kubectl-edit"))).To(Succeed())
}

// spent are the requests to the target since a snapshot.
func (w *world) spent(before faultnet.Counts) (reads, writes int) {
	got := w.counter.Snapshot().Since(before)
	return got.Reads().Total(), got.Writes().Total()
}

// notes polls the texts of the events with a reason.
func (w *world) notes(ctx context.Context, reason string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.client.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
		notes := []string{}
		for i := range list.Items {
			if list.Items[i].Reason == reason {
				notes = append(notes, list.Items[i].Type+" "+list.Items[i].Regarding.Name+": "+list.Items[i].Note)
			}
		}
		return notes
	}
}

// settles waits until nothing more is sent to the target.
func (w *world) settles(ctx context.Context) {
	GinkgoHelper()
	last := -1
	Eventually(func() bool {
		before := last
		last = w.counter.Snapshot().Total()
		return before == last
	}).WithContext(ctx).WithPolling(250*time.Millisecond).WithTimeout(patience).Should(BeTrue(), func() string { return w.counter.Snapshot().String() })
}
