// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// layer is one of the deployers that the library provides. Its items deploy the manifests in their configurations.
type layer struct {
	name string
	args func(*layerEnv) deployerlib.DeployerArgs
	// config returns a configuration. If the layer can put objects in an order, the objects `then` require the objects
	// `first`.
	config func(w *layerEnv, first, then []any) map[string]any
}

var layers = []layer{{"manifest", manifestLayer, newManifestConfig}, {"declarative", newDeclarativeArgs, newSettings}, {"stategraph", newGraphArgs, newSettings}}

// layerEnv is the environment of a spec that runs with each layer: a world.World with a deployer.
type layerEnv struct {
	*world.World
	layer
	policy   apply.Policy            // the policy of all objects
	children []declarative.ChildKind // more kinds of the declarative deployer
}

func newLayerEnv(ctx context.Context, l layer) *layerEnv {
	GinkgoHelper()
	return &layerEnv{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "layers"}), layer: l, policy: apply.PolicyManage}
}

// start runs the deployer until the spec ends or the manager is stopped.
func (w *layerEnv) start() *layerEnv {
	GinkgoHelper()
	w.Start(w.args(w))
	return w
}

// runSuccessfully creates an item and waits until it has succeeded.
func (w *layerEnv) runSuccessfully(ctx context.Context, item string, first, then []any) {
	GinkgoHelper()
	di := w.CreateAndRun(ctx, item, w.config(w, first, then))
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
}

// object returns a manifest. If the name is empty, the object is cluster-scoped, and the namespace of the world is its
// name.
func (w *layerEnv) object(apiVersion, kind, name string, fields map[string]any) map[string]any {
	metadata := map[string]any{"namespace": w.Namespace, "name": name}
	if name == "" {
		metadata = map[string]any{"name": w.Namespace} // cluster-scoped
	}
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(out, fields)
	return out
}

func (w *layerEnv) configMap(name, value string) map[string]any {
	return w.object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"key": value}})
}

// listEvents returns a function for Eventually that reads the events about an item.
func (w *layerEnv) listEvents(ctx context.Context, item string) func(Gomega) []string {
	return func(g Gomega) (out []string) {
		events := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, events, client.InNamespace(w.Namespace))).To(Succeed())
		for i := range events.Items {
			if one := &events.Items[i]; one.Regarding.Name == item {
				out = append(out, one.Reason+": "+one.Note)
			}
		}
		return out
	}
}

func manifestLayer(w *layerEnv) deployerlib.DeployerArgs {
	return manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport})
}

func newManifestConfig(w *layerEnv, first, then []any) map[string]any {
	var entries []any
	for _, one := range append(first, then...) {
		entries = append(entries, map[string]any{"policy": w.policy, "manifest": one})
	}
	return map[string]any{"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries}
}

// objectSettings is the configuration of the declarative deployer and of the state graph.
type objectSettings struct {
	First []map[string]any `json:"first"`
	Then  []map[string]any `json:"then"`
}

func newSettings(_ *layerEnv, first, then []any) map[string]any {
	return map[string]any{"apiVersion": "layers.test.deployerkit.dev/v1", "kind": "Configuration", "first": first, "then": then}
}

func newDeclarativeArgs(w *layerEnv) deployerlib.DeployerArgs {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		config, err := declarative.Config[objectSettings](req)
		if err != nil {
			return nil, err
		}
		response := declarative.NewBuilder(nil)
		for _, object := range append(config.First, config.Then...) {
			response.Add(object)
		}
		return response.Build()
	})
	return declarative.Args("layers.test.deployerkit.dev", w.Type, handler, declarative.Options{
		Children: append([]declarative.ChildKind{
			{APIVersion: "v1", Kind: "ConfigMap", Adopt: apply.AdoptionIfUnowned},
			{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			{APIVersion: "v1", Kind: "Service"},
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		}, w.children...),
		Targets: targets.Policy{AllowPrivateHosts: true}, OrphanChildren: w.policy == apply.PolicyKeep, WrapTransport: w.Counter.Transport,
	})
}

func newGraphArgs(w *layerEnv) deployerlib.DeployerArgs {
	GinkgoHelper()
	each := func(list func(*objectSettings) []map[string]any) stategraph.Resource {
		elements := func(ctx context.Context) ([]map[string]any, error) {
			config, err := stategraph.Config[objectSettings](ctx)
			if err != nil {
				return nil, err
			}
			return list(config), nil
		}
		name := func(object map[string]any) string {
			named := unstructured.Unstructured{Object: object}
			return named.GetKind() + "-" + named.GetName()
		}
		return stategraph.ForEach(elements, name, stategraph.Object(func(ctx context.Context) (*unstructured.Unstructured, error) {
			object, err := stategraph.Element[map[string]any](ctx)
			return &unstructured.Unstructured{Object: object}, err
		}, stategraph.WithPolicy(w.policy)))
	}
	graph, err := stategraph.NewBuilder().
		Add("first", each(func(c *objectSettings) []map[string]any { return c.First })).
		Add("then", each(func(c *objectSettings) []map[string]any { return c.Then }), "first").Build()
	Expect(err).NotTo(HaveOccurred())
	return stategraph.Args("layers.test.deployerkit.dev", w.Type, graph, stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport})
}

// metaOf returns the metadata of an object in the namespace of the world.
func (w *layerEnv) metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}
