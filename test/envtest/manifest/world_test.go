// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is how long anything may take on a slow machine.
const patience = 30 * time.Second

// world is a namespace with a Target and a manifest deployer of its own. The objects lie in the same namespace.
type world struct {
	client  client.Client
	ls      *landscapertest.Landscaper
	counter *faultnet.Counter // of requests to the target
	mgr     *landscapertest.Manager
	options manifest.Options
	ns      string
	workers int // 0: the default
}

func newWorld(ctx context.Context, revision contract.Revision) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w := &world{counter: &faultnet.Counter{}}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{}
	ns.GenerateName = "manifest-"
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: revision})
	Expect(w.ls.EnsureContext(ctx, w.ns)).To(Succeed())
	w.target(ctx, "cluster", cp.Kubeconfig())
	w.options = manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.counter.Transport}
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

// start runs the deployer until the spec ends, or stop is called.
func (w *world) start() *world {
	GinkgoHelper()
	args := manifest.Args(nil, w.options)
	args.Type = w.kind()
	args.Options.MaxConcurrentReconciles = w.workers
	w.mgr = landscapertest.StartManager(GinkgoTB(), cp.Config, args)
	return w
}

// kind is an item type of the namespace's own, so that the deployers of other specs leave its items alone.
func (w *world) kind() lsv1alpha1.DeployItemType {
	return lsv1alpha1.DeployItemType("manifest.deployerkit.dev/" + w.ns)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// config is a configuration of manifests; more are further fields.
func config(more map[string]any, manifests ...any) map[string]any {
	entries := []any{}
	for _, m := range manifests {
		if entry, ok := m.(entry); ok {
			entries = append(entries, map[string]any(entry))
			continue
		}
		entries = append(entries, map[string]any{"manifest": m})
	}
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries,
	}
	maps.Copy(out, more)
	return out
}

// entry is a manifest with policy and the like.
type entry map[string]any

// configMap is a manifest.
func (w *world) configMap(name string, data map[string]string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.ns, "name": name}, "data": data}
}

// configMaps are n manifests.
func (w *world) configMaps(n int, value string) []any {
	out := []any{}
	for i := range n {
		out = append(out, w.configMap(fmt.Sprintf("cm-%d", i), map[string]string{"key": value}))
	}
	return out
}

// deploy creates an item and waits for the end of its first run.
func (w *world) deploy(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.create(ctx, name, config)
	return w.finished(ctx, name)
}

// create creates an item and asks for its first run.
func (w *world) create(ctx context.Context, name string, config any, change ...func(*lsv1alpha1.DeployItem)) {
	GinkgoHelper()
	di := w.ls.Item(w.ns, name, w.kind(), config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	for _, f := range change {
		f(di)
	}
	Expect(w.ls.Deploy(ctx, di)).To(Succeed())
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
	di, err := w.ls.Get(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	di.Spec.Configuration.Raw = raw
	Expect(w.client.Update(ctx, di)).To(Succeed())
	return w.again(ctx, name)
}

func (w *world) finished(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.ls.AwaitFinished(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// data reads a ConfigMap of the target; nil when it is gone.
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

var _ deployerlib.Deployer = manifest.New(manifest.Options{})
