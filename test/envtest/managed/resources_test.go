// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/managed/resources"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const helmLabel = "helm.deployer.landscaper.gardener.cloud/deployitem"

// chart is the Go type of spec.config. The deployer in these specs resembles Landscaper's Helm deployer.
type chart struct {
	metav1.TypeMeta `json:",inline"`
	resources.Spec  `json:",inline"`

	Names  []string          `json:"names"` // the names of the ConfigMaps
	Values map[string]string `json:"values"`
}

var (
	chartVersion = schema.GroupVersion{Group: "chart.deployerkit.dev", Version: "v1"}
	chartStatus  = resources.StatusFormat{Kind: chartVersion.WithKind("ProviderStatus")}
)

// charts is a deployer that creates ConfigMaps with the values of a chart.
type charts struct {
	deployerlib.Base
	manager *managed.ResourceManager
}

func (c *charts) UseRuntime(rt deployerlib.Runtime) error { return c.manager.UseRuntime(rt) }

func (c *charts) ExtensionHooks() extension.ReconcileExtensionHooks { return c.manager.NewHooks(nil) }

func (c *charts) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*resources.Run, error) {
	r, err := resources.Begin(ctx, c.manager, chartStatus, di)
	if err != nil {
		return nil, err
	}
	r.EngineOptions = apply.Options{LandscaperLabel: helmLabel}
	r.Status.Fields["release"] = json.RawMessage(`{"revision":1}`)
	return r, nil
}

// decode returns the configuration, the objects of the chart, and the values for exports.
func (c *charts) decode(di *lsv1alpha1.DeployItem) (*resources.Config, []apply.Desired, map[string]any, error) {
	in, err := deployerlib.DecodeConfigAs[chart](di, chartVersion.WithKind("ProviderConfiguration"))
	if err != nil {
		return nil, nil, nil, err
	}
	config, err := in.ToConfig(resources.Options{ExportValues: true})
	values := map[string]any{}
	for key, value := range in.Values {
		values[key] = value
	}
	var desired []apply.Desired
	for _, name := range in.Names {
		desired = append(desired, apply.Desired{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": di.Namespace, "name": name}, "data": values,
		}}})
	}
	return &config, desired, map[string]any{"Values": values}, err
}

func (c *charts) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	config, desired, values, err := c.decode(di)
	if err != nil {
		return err
	}
	r, err := c.begin(ctx, di)
	if err != nil {
		return err
	}
	r.Config = config
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	return r.Deploy(ctx, desired, values)
}

func (c *charts) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := c.begin(ctx, di)
	if err != nil {
		return err
	}
	config, desired, _, err := c.decode(di)
	if err != nil {
		return r.Delete(ctx, target, nil)
	}
	r.Config = config
	return r.Delete(ctx, target, func() ([]apply.Desired, error) { return desired, nil })
}

// newChartConfig returns a configuration with the given fields, which are in YAML.
func newChartConfig(fields string) map[string]any {
	GinkgoHelper()
	out := map[string]any{"apiVersion": chartVersion.String(), "kind": "ProviderConfiguration"}
	Expect(yaml.Unmarshal([]byte(fields), &out)).To(Succeed())
	return out
}

var _ = Describe("Deployer of another type with managed/resources", func() {
	newWorld := func(ctx context.Context) (*world.World, func()) {
		w := world.New(ctx, GinkgoTB(), cp, world.Options{Name: "resources"})
		return w, func() {
			w.Start(deployerlib.DeployerArgs{Name: "chart.deployerkit.dev", Deployer: &charts{
				manager: managed.New(managed.Options{Name: "chart", Targets: targets.Policy{AllowPrivateHosts: true}}),
			}})
		}
	}

	It("checks objects, exports values of the deployer and of objects, and deletes by group [D17, D18]", func(ctx SpecContext) {
		w, start := newWorld(ctx)
		start()
		from := "fromResource: {apiVersion: v1, kind: ConfigMap, name: a, namespace: " + w.Namespace + "}"
		config := newChartConfig(`
names: [a, b]
values: {host: example.com}
readinessChecks: {custom: [{name: a, resourceSelector: [{apiVersion: v1, kind: ConfigMap, name: a, namespace: ` + w.Namespace + `}], requirements: [{jsonPath: .data.host, operator: exists}]}]}
exports: {exports: [{key: value, jsonPath: .Values.host}, {key: object, jsonPath: .data.host, ` + from + `}]}
deletionGroups: [{customResourceGroup: {resources: [{apiVersion: v1, kind: ConfigMap, names: [a]}]}}]`)
		di := w.CreateAndRun(ctx, "item", config)
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		secret := &corev1.Secret{}
		Expect(w.Client.Get(ctx, w.Key("item-export"), secret)).To(Succeed())
		Expect(secret.Data["config"]).To(MatchJSON(`{"value":"example.com","object":"example.com"}`))

		var status struct {
			metav1.TypeMeta
			ManagedResources []struct{ Resource corev1.ObjectReference }
			Release          struct{ Revision int }
		}
		Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, &status)).To(Succeed())
		Expect(status.GroupVersionKind()).To(Equal(chartStatus.Kind))
		Expect(status.ManagedResources).To(HaveLen(2))
		Expect(status.Release.Revision).To(Equal(1))

		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil())
		Expect(w.Read(ctx, "b")).NotTo(BeNil(), "no group names it")
	})

	It("fails an item at once if the deployer does not provide an exported value [D18]", func(ctx SpecContext) {
		w, start := newWorld(ctx)
		start()
		di := w.CreateAndRun(ctx, "item", newChartConfig("names: [a]\nexports: {exports: [{key: port, jsonPath: .Values.port}]}"))
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("spec.config.exports.exports[0].jsonPath: .Values.port of the values of the deployer does not exist"))
	})

	It("takes over the objects that Landscaper's deployer of this type labelled and listed [D17]", func(ctx SpecContext) {
		w, start := newWorld(ctx)
		labels := map[string]string{helmLabel: "item"}
		for _, name := range []string{"a", "gone"} {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: labels}, Data: map[string]string{"old": "x"}}
			Expect(w.Client.Create(ctx, cm, client.FieldOwner("helm-deployer-controller"))).To(Succeed())
		}
		di := w.Item("item", newChartConfig("names: [a]\nvalues: {new: value}"))
		Expect(w.Landscaper.Create(ctx, di)).To(Succeed())
		listed := map[string]any{"policy": "manage", "resource": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": "gone", "uid": w.Read(ctx, "gone").UID,
		}}
		status, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": 0, "providerStatus": map[string]any{
			"apiVersion": chartStatus.Kind.GroupVersion().String(), "kind": chartStatus.Kind.Kind, "managedResources": []any{listed},
		}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Client.Status().Patch(ctx, di, client.RawPatch("application/merge-patch+json", status))).To(Succeed())
		start()
		di = w.RunAgain(ctx, "item")
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(w.Read(ctx, "a").Data).To(Equal(map[string]string{"new": "value"}))
		Expect(w.Read(ctx, "a").Labels).NotTo(HaveKey(helmLabel))
		Expect(w.Read(ctx, "gone")).To(BeNil())
	})
})
