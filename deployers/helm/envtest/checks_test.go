// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// secondTarget creates another Target with the name "second" for the same cluster.
func (w *world) secondTarget(ctx context.Context) {
	GinkgoHelper()
	target := &lsv1alpha1.Target{}
	Expect(w.Get(ctx, w.key("cluster"), target)).To(Succeed())
	second := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "second"}, Spec: target.Spec}
	Expect(w.Create(ctx, second)).To(Succeed())
}

// exported reads the values that an item exports.
func (w *world) exported(ctx context.Context, di *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	Expect(di.Status.ExportReference).NotTo(BeNil())
	secret := &corev1.Secret{}
	Expect(w.Get(ctx, w.key(di.Status.ExportReference.Name), secret)).To(Succeed())
	return string(secret.Data[lsv1alpha1.DataObjectSecretDataKey])
}

// hold sets or removes a finalizer of a ConfigMap.
func (w *world) hold(ctx context.Context, name, finalizers string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	Expect(w.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`)))).To(Succeed())
}

// startDeletion starts the deletion of an item without waiting.
func (w *world) startDeletion(ctx context.Context, name string) (job string) {
	GinkgoHelper()
	Expect(w.landscaper.MarkForDeletion(ctx, w.key(name))).To(Succeed())
	job, err := w.landscaper.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return job
}

var _ = Describe("Checks and exports", func() {
	modes := map[string]func(*world, charttest.Files, map[string]any, config) config{
		"Helm mode": (*world).helmMode, "manifest mode": (*world).manifestMode,
	}
	unready := simple.With(charttest.Files{"templates/d.yaml": deployment})

	for name, mode := range modes {
		It("waits for custom checks, also in another target, in "+name+" [E15]", func(ctx SpecContext) {
			w := newWorld(ctx)
			w.secondTarget(ctx)
			Expect(w.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "gate"}})).To(Succeed())
			check := func(name, object string, more map[string]any) map[string]any {
				out := map[string]any{
					"name":             name,
					"resourceSelector": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": object, "namespace": w.namespace}},
					"requirements":     []any{map[string]any{"jsonPath": ".data.ready", "operator": "==", "values": []any{map[string]any{"value": "true"}}}},
				}
				maps.Copy(out, more)
				return out
			}
			checks := config{"readinessChecks": map[string]any{"custom": []any{
				check("own", "colors", nil), check("other", "gate", map[string]any{"targetName": "second"}),
			}}}
			w.create(ctx, "item", mode(w, simple, nil, checks))
			Eventually(w.condition(ctx, "item", "Waiting")).Should(ContainSubstring("own"))
			w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["ready"] = "true" })
			Eventually(w.condition(ctx, "item", "Waiting")).Should(ContainSubstring("other"))
			w.edit(ctx, "gate", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"ready": "true"} })
			Expect(w.finished(ctx, "item")).To(beSucceeded())
		})

		It("exports values of objects, of objects to which they refer, and of objects in other targets, in "+name+" [E17]", func(ctx SpecContext) {
			w := newWorld(ctx)
			w.secondTarget(ctx)
			Expect(w.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "token"}, StringData: map[string]string{"token": "t"}})).To(Succeed())
			files := simple.With(charttest.Files{"templates/s.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\nsecrets: [{name: token, namespace: \"{{ .Release.Namespace }}\"}]\n"})
			object := func(kind, name string) map[string]any {
				return map[string]any{"apiVersion": "v1", "kind": kind, "name": name, "namespace": w.namespace}
			}
			exports := config{
				"exports": map[string]any{"exports": []any{
					map[string]any{"key": "color", "jsonPath": ".Values.color"},
					map[string]any{"key": "fixed", "jsonPath": "data.a", "fromResource": object("ConfigMap", "fixed")},
					map[string]any{"key": "other", "jsonPath": "data.a", "fromResource": object("ConfigMap", "fixed"), "targetName": "second"},
					map[string]any{
						"key": "token", "jsonPath": "secrets[0]", "fromResource": object("ServiceAccount", "account"),
						"fromObjectRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "jsonPath": "data.token"},
					},
				}},
				"exportsFromManifests": []any{map[string]any{"key": "old", "jsonPath": "data.color", "fromResource": object("ConfigMap", "colors")}},
			}
			di := w.deploy(ctx, "item", mode(w, files, nil, exports))
			Expect(di).To(beSucceeded())
			Expect(w.exported(ctx, di)).To(MatchJSON(`{"color": "blue", "fixed": "b", "other": "b", "token": "dA==", "old": "blue"}`))
		})

		It("waits for the objects of the chart, unless the default checks are disabled, in "+name+" [E14]", func(ctx SpecContext) {
			w := newWorld(ctx)
			w.create(ctx, "item", mode(w, unready, nil, nil))
			Eventually(w.condition(ctx, "item", "Waiting")).Should(ContainSubstring("Deployment.apps " + w.namespace + "/unready"))
			Expect(w.update(ctx, "item", mode(w, unready, nil, config{"readinessChecks": map[string]any{"disableDefault": true}}))).To(beSucceeded())
		})

		It("checks all objects on a schedule, in "+name+" [E19]", func(ctx SpecContext) {
			w := newWorld(ctx)
			di := w.deploy(ctx, "item", mode(w, simple, nil, config{"continuousReconcile": map[string]any{"every": "3s"}}))
			Expect(di).To(beSucceeded())
			before := w.counter.Snapshot()
			Eventually(func(g Gomega) {
				now, err := w.landscaper.Get(ctx, w.key("item"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(now.Status.LastReconcileTime.Time).To(BeTemporally(">", di.Status.LastReconcileTime.Time))
				g.Expect(now.Status.JobID).To(Equal(di.Status.JobID))
				got := w.counter.Snapshot().Since(before)
				g.Expect(got.ForObject("configmaps", w.namespace, "fixed").Sum()).To(BeNumerically(">", 0), "requests about an object that is unchanged")
			}).Should(Succeed())
		})

		It("honours the timeouts of earlier versions of Landscaper, in "+name+" [E29]", func(ctx SpecContext) {
			w := newWorld(ctx)
			di := w.deploy(ctx, "item", mode(w, unready, nil, config{"readinessChecks": map[string]any{"timeout": "1s"}}))
			Expect(di).To(beFailed("unready"))
			Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
			missing := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "namespace": w.namespace}
			exports := config{"deleteTimeout": "1s", "exports": map[string]any{"defaultTimeout": "1s", "exports": []any{map[string]any{"key": "a", "jsonPath": "data.a", "fromResource": missing}}}}
			di = w.update(ctx, "item", mode(w, simple, nil, exports))
			Expect(di).To(beFailed(`export "a"`))
			Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
			w.hold(ctx, "fixed", `["example.com/hold"]`)
			job := w.startDeletion(ctx, "item")
			di, err := w.landscaper.WaitForJob(ctx, w.key("item"), job)
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.LastError.Message).To(ContainSubstring("ConfigMap " + w.namespace + "/fixed"))
			Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
			w.hold(ctx, "fixed", "null")
			w.remove(ctx, "item")
		})
	}
})

var _ = Describe("Deletion", func() {
	It("names each object that remains after a failed uninstall, and why [Ex17] [E12]", func(ctx SpecContext) {
		w := newWorld(ctx)
		c := config{"helmDeploymentConfig": map[string]any{"uninstall": map[string]any{"timeout": "2s"}}}
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, c))).To(beSucceeded())
		w.hold(ctx, "fixed", `["example.com/hold"]`)
		w.hold(ctx, "colors", `["example.com/other"]`)
		job := w.startDeletion(ctx, "item")
		di, err := w.landscaper.WaitForJob(ctx, w.key("item"), job)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.LastError.Message).To(ContainSubstring("uninstall of chart test 1.0.0 failed: uninstall not done within 2s"))
		for _, text := range []string{"ConfigMap " + w.namespace + "/fixed", "example.com/hold", "ConfigMap " + w.namespace + "/colors", "example.com/other"} {
			Expect(di.Status.LastError.Message).To(ContainSubstring(text))
		}
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed"}))
		w.hold(ctx, "fixed", "null")
		w.hold(ctx, "colors", "null")
		w.remove(ctx, "item")
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	It("needs neither the chart nor the Context [Ex17]", func(ctx SpecContext) {
		s := &store{charts: map[string]charttest.Files{"good": simple.With(charttest.Files{"templates/h.yaml": hook("bye", "pre-delete", "")})}}
		w := newWorld(ctx, useStore(s))
		Expect(w.deploy(ctx, "item", w.helmMode(nil, nil, ref("good")))).To(beSucceeded())
		w.manager.Stop()
		s.charts = nil
		Expect(w.Delete(ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: lsv1alpha1.DefaultContextName}})).To(Succeed())
		w.start()
		w.startDeletion(ctx, "item")
		w.endPod(ctx, "bye", corev1.PodSucceeded)
		Expect(w.landscaper.WaitForDeletion(ctx, w.key("item"))).To(Succeed())
		Expect(w.Get(ctx, w.key("fixed"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	It("tolerates a release that is gone, and leaves objects that the release does not own [E31]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		w.manager.Stop()
		Expect(w.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fixed"}}
		Expect(w.Delete(ctx, theirs)).To(Succeed())
		theirs = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fixed"}, Data: map[string]string{"whose": "theirs"}}
		Expect(w.Create(ctx, theirs)).To(Succeed())
		Expect(w.landscaper.MarkForDeletion(ctx, w.key("item"))).To(Succeed())
		w.start()
		w.remove(ctx, "item")
		Expect(w.Get(ctx, w.key("colors"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.read(ctx, "fixed")).To(Equal(map[string]string{"whose": "theirs"}))
	})

	It("succeeds if the job begins while an upgrade waits [Ex10]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		w.trigger(ctx, "item", w.helmMode(simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-upgrade", "")}), nil, nil))
		Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
		w.remove(ctx, "item")
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})
})
