// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// other is the name of the Target for the other cluster.
const other = "other"

// object is the name of the ConfigMap that each deployer deploys.
const object = "web"

// kind describes a kind of deployer.
type kind struct {
	name string
	args func(setup) deployerlib.DeployerArgs
	// config returns the configuration of the item. If `gated` is true, the object is not ready until its field
	// data.ready is "true".
	config func(w *env, gated bool) map[string]any
}

// setup determines what is special about the deployer of a spec. The zero value is a usual deployer.
type setup struct {
	keeps        bool // the deployer leaves its objects in the old cluster
	cleanUpFirst bool // the deployer cleans up the old cluster first
	bare         bool // the namespace does not exist in the other cluster
	transport    func(http.RoundTripper) http.RoundTripper
}

// getPolicy returns the policy of the object.
func (s setup) getPolicy() apply.Policy {
	if s.keeps {
		return apply.PolicyKeep
	}
	return apply.PolicyManage
}

var (
	allowed = targets.Policy{AllowPrivateHosts: true}
	kinds   = []kind{{"manifest", newManifestArgs, manifestConfig}, {"declarative", newDeclarativeArgs, newSettings}, {"stategraph", newGraphArgs, newSettings}}
)

func newManifestArgs(s setup) deployerlib.DeployerArgs {
	return manifest.Args(nil, manifest.Options{Targets: allowed, CleanUpFirst: s.cleanUpFirst, WrapTransport: s.transport})
}

func manifestConfig(w *env, gated bool) map[string]any {
	cm := configMap(w.Namespace, gated)
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{map[string]any{"policy": w.setup.getPolicy(), "manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": cm.Namespace, "name": cm.Name}, "data": cm.Data,
		}}},
	}
	if gated {
		out["readinessChecks"] = map[string]any{"custom": []any{map[string]any{
			"name": "gate", "resourceSelector": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": cm.Namespace, "name": cm.Name}},
			"requirements": []any{map[string]any{"jsonPath": ".data.ready", "operator": "==", "values": []any{map[string]any{"value": "true"}}}},
		}}}
	}
	return out
}

// settings is the configuration of the declarative deployer and of the state graph.
type settings struct {
	Gated bool `json:"gated"`
}

func newSettings(_ *env, gated bool) map[string]any {
	return map[string]any{"apiVersion": "moves.test.deployerkit.dev/v1", "kind": "Configuration", "gated": gated}
}

func newDeclarativeArgs(s setup) deployerlib.DeployerArgs {
	return declarative.Args("moves.test.deployerkit.dev", "moves.test.deployerkit.dev/declarative", declarative.HandlerFunc(handleSync), newDeclarativeOptions(s))
}

func newDeclarativeOptions(s setup) declarative.Options {
	return declarative.Options{
		Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}, Targets: allowed, WrapTransport: s.transport,
		OrphanChildren: s.keeps, CleanUpFirst: s.cleanUpFirst,
	}
}

// handleSync is the handler of the declarative deployer.
func handleSync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[settings](req)
	if err != nil {
		return nil, err
	}
	live, found, err := declarative.Find[corev1.ConfigMap](req.Children, "ConfigMap", object)
	response := declarative.NewBuilder(nil).Try(configMap(req.Item.Namespace, config.Gated), err)
	if config.Gated && (!found || !isOpen(live)) {
		response.Wait("the gate is shut")
	}
	return response.Build()
}

func newGraphArgs(s setup) deployerlib.DeployerArgs {
	GinkgoHelper()
	graph, err := stategraph.NewBuilder().Add("web", stategraph.Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
		config, err := stategraph.Config[settings](ctx)
		if err != nil {
			return nil, err
		}
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		return configMap(item.Namespace, config.Gated), nil
	}, stategraph.WithPolicy(s.getPolicy()), stategraph.ReadyWhen(func(cm *corev1.ConfigMap) (stategraph.Readiness, error) {
		return stategraph.ReadyIf(isOpen(cm), "the gate is shut"), nil
	}))).Build()
	Expect(err).NotTo(HaveOccurred())
	return stategraph.Args("moves.test.deployerkit.dev", "moves.test.deployerkit.dev/graph", graph, stategraph.Options{
		Targets: allowed, CleanUpFirst: s.cleanUpFirst, WrapTransport: s.transport,
	})
}

// configMap returns the object that each deployer deploys.
func configMap(namespace string, gated bool) *corev1.ConfigMap {
	data := map[string]string{"key": "a"}
	if gated {
		data["gated"] = "true"
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object}, Data: data}
}

// isOpen reports whether the object is ready.
func isOpen(cm *corev1.ConfigMap) bool {
	return cm.Data["gated"] != "true" || cm.Data["ready"] == "true"
}

// env is the environment of a spec: a world.World whose namespace exists in both clusters. It contains a Target for
// each cluster, and an item that is deployed to the first cluster.
type env struct {
	*world.World
	kind  kind
	setup setup
}

// newEnv creates the world and deploys the item to the first cluster.
func newEnv(ctx context.Context, k kind, s setup) *env {
	GinkgoHelper()
	w := newWorld(ctx, k, s)
	w.expectSucceeded(w.CreateAndRun(ctx, "item", k.config(w, false)))
	Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
	return w
}

// newWorld creates the world without the item.
func newWorld(ctx context.Context, k kind, s setup) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), here, world.Options{Name: "moves", Landscaper: landscapertest.LandscaperOptions{}}), kind: k, setup: s}
	if !s.bare {
		Expect(inThere.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})).To(Succeed())
	}
	w.CreateTarget(ctx, other, there.Kubeconfig())
	w.start()
	return w
}

func (w *env) start() {
	GinkgoHelper()
	w.Start(w.kind.args(w.setup))
}

func (w *env) expectSucceeded(di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
}

// getUID returns the UID of the object in a cluster, or "" if the object does not exist there.
func (w *env) getUID(ctx context.Context, c client.Client) string {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, w.Key(object), cm)
	if apierrors.IsNotFound(err) {
		return ""
	}
	Expect(err).NotTo(HaveOccurred())
	return string(cm.UID)
}

// waitUntilDeleted waits until the object no longer exists in a cluster.
func (w *env) waitUntilDeleted(ctx context.Context, c client.Client) {
	GinkgoHelper()
	Eventually(func() error { return c.Get(ctx, w.Key(object), &corev1.ConfigMap{}) }).WithContext(ctx).WithTimeout(world.Patience).
		Should(Satisfy(apierrors.IsNotFound))
}

// setTarget sets the Target of the item, without starting a job.
func (w *env) setTarget(ctx context.Context, target string) {
	GinkgoHelper()
	di := w.Get(ctx, "item")
	patch := client.MergeFrom(di.DeepCopy())
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	Expect(w.Client.Patch(ctx, di, patch)).To(Succeed())
}

// moveAndWait sets the Target of the item, starts a job and waits until the job has ended.
func (w *env) moveAndWait(ctx context.Context, target string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.setTarget(ctx, target)
	return w.RunAgain(ctx, "item")
}

// setKubeconfig changes the kubeconfig of a Target.
func (w *env) setKubeconfig(ctx context.Context, target string, kubeconfig []byte) {
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

// newUnreachableKubeconfig returns a kubeconfig for a server that does not respond.
func newUnreachableKubeconfig() []byte {
	return []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "none"}}]}`)
}

// startGatedMove sets the Target of the item and starts a job. It waits until the object exists in the new cluster. The
// object does not become ready there.
func (w *env) startGatedMove(ctx context.Context, target string, to client.Client) {
	GinkgoHelper()
	w.setTarget(ctx, target)
	Expect(w.Landscaper.Update(ctx, w.Key("item"), w.kind.config(w, true))).To(Succeed())
	_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return to.Get(ctx, w.Key(object), &corev1.ConfigMap{}) }).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
	_, err = w.Landscaper.WaitForPhase(ctx, w.Key("item"), lsv1alpha1.DeployItemPhases.Progressing)
	Expect(err).NotTo(HaveOccurred())
}

// patchObject sets a field of the object in a cluster, as a user would.
func (w *env) patchObject(ctx context.Context, c client.Client, field, value string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metaOf(w, object)}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%q}}`, field, value))
	Expect(c.Patch(ctx, cm, patch, client.FieldOwner("kubectl-edit"))).To(Succeed())
}

// waitForCorrections waits until the item has been reconciled in a cluster again. It changes the object and waits until
// the deployer has corrected the change. It does so twice. A run corrects the object before it ends, so the first run
// has ended when the second run corrects the object.
func (w *env) waitForCorrections(ctx context.Context, c client.Client) {
	GinkgoHelper()
	for range 2 {
		w.patchObject(ctx, c, "key", "b")
		Eventually(func(g Gomega) {
			cm := &corev1.ConfigMap{}
			g.Expect(c.Get(ctx, w.Key(object), cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("key", "a"))
		}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
	}
}

// setFinalizers sets the finalizers of the object in the first cluster.
func (w *env) setFinalizers(ctx context.Context, finalizers string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
	Expect(w.Client.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metaOf(w, object)}, patch, client.FieldOwner("holder"))).To(Succeed())
}
