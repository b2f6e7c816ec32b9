// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// The constant `other` is the name of the Target for the other cluster.
const other = "other"

// object is the name of the ConfigMap that each deployer deploys.
const object = "web"

// kind describes a kind of deployer. If their argument `keeps` is true, the functions `args` and `config` are for a
// deployer that leaves its objects in the old cluster.
type kind struct {
	name   string
	args   func(keeps bool) deployerlib.DeployerArgs
	config func(w *env, keeps bool) map[string]any
}

var (
	allowed = targets.Policy{AllowPrivateHosts: true}
	kinds   = []kind{
		{"manifest", func(bool) deployerlib.DeployerArgs { return manifest.Args(nil, manifest.Options{Targets: allowed}) }, manifests},
		{"declarative", declaratives, plain},
		{"stategraph", graphs, plain},
	}
)

func manifests(w *env, keeps bool) map[string]any {
	policy := apply.Manage
	if keeps {
		policy = apply.Keep
	}
	return map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{map[string]any{"policy": policy, "manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.Namespace, "name": object}, "data": map[string]any{"key": "a"},
		}}},
	}
}

func plain(*env, bool) map[string]any {
	return map[string]any{"apiVersion": "moves.test.deployerkit.dev/v1", "kind": "Configuration"}
}

func declaratives(keeps bool) deployerlib.DeployerArgs {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		return &declarative.SyncResponse{Children: []any{configMap(req.Item.Namespace)}}, nil
	})
	return declarative.Args("moves.test.deployerkit.dev", "moves.test.deployerkit.dev/declarative", handler, declarative.Options{
		Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}, Targets: allowed, OrphanChildren: keeps,
	})
}

func graphs(keeps bool) deployerlib.DeployerArgs {
	GinkgoHelper()
	policy := apply.Manage
	if keeps {
		policy = apply.Keep
	}
	graph, err := stategraph.NewGraph().Add("web", stategraph.Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		return configMap(item.Namespace), nil
	}, stategraph.WithPolicy(policy))).Build()
	Expect(err).NotTo(HaveOccurred())
	return stategraph.Args("moves.test.deployerkit.dev", "moves.test.deployerkit.dev/graph", graph, stategraph.Options{Targets: allowed})
}

func configMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object}, Data: map[string]string{"key": "a"}}
}

// env is the environment of a spec: a world.World whose namespace exists in both clusters. It contains a Target for
// each cluster, and an item that is deployed to the first cluster.
type env struct {
	*world.World
	kind  kind
	keeps bool
}

// newEnv creates the world and deploys the item to the first cluster.
func newEnv(ctx context.Context, k kind, keeps bool) *env {
	GinkgoHelper()
	w := newWorld(ctx, k, keeps)
	w.succeeds(w.Deploy(ctx, "item", k.config(w, keeps)))
	Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
	return w
}

// newWorld creates the world without the item.
func newWorld(ctx context.Context, k kind, keeps bool) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), here, world.Options{Name: "moves", Landscaper: landscapertest.LandscaperOptions{}}), kind: k, keeps: keeps}
	Expect(inThere.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})).To(Succeed())
	w.CreateTarget(ctx, other, there.Kubeconfig())
	w.start()
	return w
}

func (w *env) start() {
	GinkgoHelper()
	w.Start(w.kind.args(w.keeps))
}

func (w *env) succeeds(di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "%+v", di.Status.LastError)
}

// The method `in` returns the UID of the object in a cluster, or "" if the object does not exist there.
func (w *env) in(ctx context.Context, c client.Client) string {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, w.Key(object), cm)
	if apierrors.IsNotFound(err) {
		return ""
	}
	Expect(err).NotTo(HaveOccurred())
	return string(cm.UID)
}

// awaitGone waits until the object no longer exists in a cluster.
func (w *env) awaitGone(ctx context.Context, c client.Client) {
	GinkgoHelper()
	Eventually(func() error { return c.Get(ctx, w.Key(object), &corev1.ConfigMap{}) }).WithContext(ctx).WithTimeout(world.Patience).
		Should(Satisfy(apierrors.IsNotFound))
}

// aim sets the Target of the item, without starting a job.
func (w *env) aim(ctx context.Context, target string) {
	GinkgoHelper()
	di := w.Get(ctx, "item")
	patch := client.MergeFrom(di.DeepCopy())
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	Expect(w.Client.Patch(ctx, di, patch)).To(Succeed())
}

// move sets the Target of the item, starts a job and waits until the job has ended.
func (w *env) move(ctx context.Context, target string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.aim(ctx, target)
	return w.Again(ctx, "item")
}

// point changes the kubeconfig of a Target.
func (w *env) point(ctx context.Context, target string, kubeconfig []byte) {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	Expect(err).NotTo(HaveOccurred())
	stored := &lsv1alpha1.Target{}
	Expect(w.Client.Get(ctx, w.Key(target), stored)).To(Succeed())
	stored.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(w.Client.Update(ctx, stored)).To(Succeed())
	Eventually(func(g Gomega) { // wait until the deployer has received the change
		seen := &lsv1alpha1.Target{}
		g.Expect(w.Manager.GetClient().Get(ctx, w.Key(target), seen)).To(Succeed())
		g.Expect(seen.ResourceVersion).To(Equal(stored.ResourceVersion))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}

// metaOf returns the metadata of an object in the namespace of the world.
func metaOf(w *env, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

// The function `nowhere` returns a kubeconfig for a server that does not respond.
func nowhere() []byte {
	return []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "none"}}]}`)
}
