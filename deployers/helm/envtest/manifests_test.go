// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// simple is a chart with two ConfigMaps, one of which contains a value.
var simple = charttest.Files{
	"values.yaml":      "color: blue\n",
	"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {color: \"{{ .Values.color }}\"}\n",
	"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\ndata: {a: b}\n",
}

var _ = Describe("Manifest mode", func() {
	It("deploys, updates and deletes the objects of a chart, without a release record [E3]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "web", w.manifestMode(simple, nil, nil))).To(beSucceeded())
		cm := &corev1.ConfigMap{}
		Expect(w.Get(ctx, w.key("colors"), cm)).To(Succeed())
		Expect(cm.Data).To(HaveKeyWithValue("color", "blue"))
		Expect(cm.Labels).To(HaveKeyWithValue(helmv1alpha1.ManagedDeployItemLabel, "web"))
		secrets := &corev1.SecretList{}
		Expect(w.List(ctx, secrets, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(secrets.Items).To(BeEmpty())

		before := w.counter.Snapshot()
		Expect(w.update(ctx, "web", w.manifestMode(simple, map[string]any{"color": "red"}, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "red"))
		_, writes := w.spent(before)
		Expect(writes).To(Equal(1), "the number of writes for one changed object")

		w.remove(ctx, "web")
		Expect(w.read(ctx, "colors")).To(BeNil())
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})

	It("sends no request to the target if nothing has changed [Ex1]", func(ctx SpecContext) {
		w := newWorld(ctx)
		random := simple.With(charttest.Files{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: random}\ndata: {a: \"{{ randAlphaNum 8 }}\"}\n"})
		Expect(w.deploy(ctx, "web", w.manifestMode(random, map[string]any{"a": 1, "b": map[string]any{"c": 2}}, nil))).To(beSucceeded())
		before, fetched, value := w.counter.Snapshot(), w.fetched.count, w.read(ctx, "random")
		Expect(w.again(ctx, "web")).To(beSucceeded())
		By("writing the same values in another way [Ex3]")
		raw := json.RawMessage(`{"b": {"c": 2.0}, "a": 1.0}`)
		Expect(w.update(ctx, "web", w.manifestMode(random, nil, config{"values": raw}))).To(beSucceeded())
		reads, writes := w.spent(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "the numbers of reads and writes")
		Expect(w.fetched.count).To(Equal(fetched), "the number of fetched archives")
		Expect(w.read(ctx, "random")).To(Equal(value))
	})

	It("only reads after a restart if nothing has changed [Ex2]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "web", w.manifestMode(simple, nil, nil))).To(beSucceeded())
		w.manager.Stop()
		before, fetched := w.counter.Snapshot(), w.fetched.count
		w.start()
		Expect(w.again(ctx, "web")).To(beSucceeded())
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.fetched.count).To(Equal(fetched), "the number of fetched archives")
	})

	It("corrects a change by another writer [Ex20]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "web", w.manifestMode(simple, nil, nil))).To(beSucceeded())
		w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["color"] = "green" })
		Eventually(w.data(ctx, "colors")).Should(HaveKeyWithValue("color", "blue"))
		Expect(w.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fixed"}})).To(Succeed())
		Eventually(w.data(ctx, "fixed")).Should(HaveKeyWithValue("a", "b"))
	})

	It("deletes objects that the chart no longer contains, except those with the policy keep", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{
			"templates/c.yaml": "{{ if .Values.more }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n{{ end }}",
		})
		Expect(w.deploy(ctx, "web", w.manifestMode(files, map[string]any{"more": true}, nil))).To(beSucceeded())
		Expect(w.update(ctx, "web", w.manifestMode(files, nil, nil))).To(beSucceeded())
		Eventually(func() error { return w.Get(ctx, w.key("more"), &corev1.ConfigMap{}) }).Should(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.Get(ctx, w.key("kept"), &corev1.ConfigMap{})).To(Succeed())
	})

	It("exports values of the chart and of objects [E16] [E17]", func(ctx SpecContext) {
		w := newWorld(ctx)
		exports := []map[string]any{
			{"key": "color", "jsonPath": ".Values.color"},
			{"key": "release.name", "jsonPath": ".Release.Name"},
			{"key": "version", "jsonPath": ".Chart.Version"},
			{"key": "minor", "jsonPath": ".Capabilities.KubeVersion.Minor"},
			{"key": "fixed", "jsonPath": "data.a", "fromResource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "fixed", "namespace": w.namespace}},
		}
		di := w.deploy(ctx, "web", w.manifestMode(simple, nil, config{"exports": map[string]any{"exports": exports}}))
		Expect(di).To(beSucceeded())
		exported := func(di *lsv1alpha1.DeployItem) string {
			secret := &corev1.Secret{}
			Expect(w.Get(ctx, w.key(di.Status.ExportReference.Name), secret)).To(Succeed())
			return string(secret.Data[lsv1alpha1.DataObjectSecretDataKey])
		}
		Expect(exported(di)).To(MatchJSON(`{"color": "blue", "release": {"name": "web"}, "version": "1.0.0", "minor": "36", "fixed": "b"}`))
		By("changing only the exports")
		exports = exports[:1]
		di = w.update(ctx, "web", w.manifestMode(simple, nil, config{"exports": map[string]any{"exports": exports}}))
		Expect(di).To(beSucceeded())
		Expect(exported(di)).To(MatchJSON(`{"color": "blue"}`))
	})

	It("creates a missing namespace only if requested, and never deletes it [E4]", func(ctx SpecContext) {
		w := newWorld(ctx)
		other := w.namespace + "-other"
		before := w.counter.Snapshot()
		Expect(w.deploy(ctx, "web", w.manifestMode(simple, nil, config{"namespace": other}))).To(beFailed(`the namespace "` + other + `" does not exist`))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.update(ctx, "web", w.manifestMode(simple, nil, config{"namespace": other, "createNamespace": true}))).To(beSucceeded())
		w.remove(ctx, "web")
		Expect(w.Get(ctx, client.ObjectKey{Name: other}, &corev1.Namespace{})).To(Succeed())
		Expect(w.Get(ctx, client.ObjectKey{Namespace: other, Name: "fixed"}, &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("sets the namespace of namespaced objects only [E5]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/c.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Release.Namespace }}\"}\n"})
		Expect(w.deploy(ctx, "web", w.manifestMode(files, nil, nil))).To(beSucceeded())
		list := &metav1.PartialObjectMetadata{}
		list.SetGroupVersionKind(clusterRole)
		Expect(w.Get(ctx, client.ObjectKey{Name: w.namespace}, list)).To(Succeed())
		w.remove(ctx, "web")
		Expect(w.Get(ctx, client.ObjectKey{Name: w.namespace}, list)).To(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("leaves out hooks, unless they are to be applied", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"})
		Expect(w.deploy(ctx, "web", w.manifestMode(files, nil, nil))).To(beSucceeded())
		Expect(w.read(ctx, "hook")).To(BeNil())
		Expect(w.Get(ctx, w.key("hook"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.update(ctx, "web", w.manifestMode(files, nil, config{"deployerkit": map[string]any{"hooks": "apply"}}))).To(beSucceeded())
		Expect(w.Get(ctx, w.key("hook"), &corev1.ConfigMap{})).To(Succeed())
	})

	It("creates the CustomResourceDefinitions first, and keeps them when the item is deleted [E26]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := func(group string) charttest.Files {
			return charttest.Files{
				"crds/a.yaml":      definition(group),
				"templates/a.yaml": "{{ if .Capabilities.APIVersions.Has \"" + group + "/v1/Widget\" }}\napiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: w}\n{{ end }}",
			}
		}
		exists := func(group string) error {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(crdKind)
			return w.Get(ctx, client.ObjectKey{Name: "widgets." + group}, object)
		}
		group := w.namespace + ".example.com"
		Expect(w.deploy(ctx, "web", w.manifestMode(files(group), nil, nil))).To(beSucceeded())
		w.remove(ctx, "web")
		Expect(exists(group)).To(Succeed())
		By("deleting the definitions on request")
		group = "other." + group
		Expect(w.deploy(ctx, "web", w.manifestMode(files(group), nil, config{"deployerkit": map[string]any{"crds": map[string]any{"delete": true}}}))).To(beSucceeded())
		w.remove(ctx, "web")
		Expect(exists(group)).To(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("writes nothing if the chart cannot be rendered [Ex14]", func(ctx SpecContext) {
		w := newWorld(ctx)
		before := w.counter.Snapshot()
		files := simple.With(charttest.Files{"templates/c.yaml": "{{ fail \"no color\" }}"})
		di := w.deploy(ctx, "web", w.manifestMode(files, nil, nil))
		Expect(di).To(beFailed("spec.config.chart: chart test 1.0.0: execution error at (test/templates/c.yaml:1:3): no color"))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
	})

	It("deletes the objects of an item whose configuration is invalid [Ex17]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "web", w.manifestMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.landscaper.Update(ctx, w.key("web"), config{"kind": "Nonsense"})).To(Succeed())
		w.remove(ctx, "web")
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})
})
