// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// deployment is a template for a Deployment that never becomes ready, because the control plane runs no Pods.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: unready}
spec:
  selector: {matchLabels: {app: unready}}
  template:
    metadata: {labels: {app: unready}}
    spec: {containers: [{name: c, image: c}]}
`

// settings returns a configuration with settings for both operations.
func settings(both map[string]any) config {
	return config{"helmDeploymentConfig": map[string]any{"install": both, "upgrade": both}}
}

// makeReady waits for a Pod and makes it ready.
func (w *world) makeReady(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error {
		pod := &corev1.Pod{}
		if err := w.Get(ctx, w.key(name), pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return w.Status().Update(ctx, pod)
	}).Should(Succeed())
}

var _ = Describe("Settings of operations", func() {
	pod := simple.With(charttest.Files{"templates/p.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: main}\nspec: {containers: [{name: c, image: c}]}\n"})

	It("marks the revision as deployed when all objects are ready, if wait is set [E8]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", w.helmMode(pod, nil, settings(map[string]any{"wait": true})))
		Eventually(func() error { return w.Get(ctx, w.key("main"), &corev1.Pod{}) }).Should(Succeed())
		Consistently(w.revisions(ctx, "web")).WithTimeout(time.Second).Should(Equal([]string{"1 pending-install"}))
		w.makeReady(ctx, "main")
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("marks the revision as deployed at once, if wait is not set [E8] [E14]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", w.helmMode(pod, nil, nil))
		Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 deployed"}))
		Eventually(func() (lsv1alpha1.DeployItemPhase, error) {
			di, err := w.landscaper.Get(ctx, w.key("item"))
			return di.Status.Phase, err
		}).Should(Equal(lsv1alpha1.DeployItemPhases.Progressing))
		w.makeReady(ctx, "main")
		Expect(w.finished(ctx, "item")).To(beSucceeded())
	})

	It("leaves nothing of a failed installation, and the former state after a failed upgrade, if atomic is set [E7] [E12]", func(ctx SpecContext) {
		w := newWorld(ctx)
		broken := simple.With(charttest.Files{"templates/d.yaml": deployment})
		atomic, limited := settings(map[string]any{"atomic": true}), settings(map[string]any{"atomic": true, "timeout": "4s"})
		Expect(w.deploy(ctx, "item", w.helmMode(broken, nil, limited))).To(beFailed("not done within 4s: Deployment.apps " + w.namespace + "/unready"))
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(w.read(ctx, "fixed")).To(BeNil())
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, atomic))).To(beSucceeded())
		Expect(w.update(ctx, "item", w.helmMode(broken, map[string]any{"color": "red"}, limited))).To(beFailed("unready"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
		By("trying again in the next job")
		Expect(w.update(ctx, "item", w.helmMode(simple, map[string]any{"color": "red"}, atomic))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "red"))
	})

	It("limits the time of a hook [E12]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-install", "")})
		di := w.deploy(ctx, "item", w.helmMode(files, nil, settings(map[string]any{"timeout": "4s"})))
		Expect(di).To(beFailed("install not done within 4s: waiting for hook Pod slow"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed"}))
	})

	It("replaces an object only if force is set [E9]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen}\nimmutable: true\ndata: {a: \"{{ .Values.a }}\"}\n"}
		Expect(w.deploy(ctx, "item", w.helmMode(files, map[string]any{"a": "1"}, nil))).To(beSucceeded())
		di := w.update(ctx, "item", w.helmMode(files, map[string]any{"a": "2"}, nil))
		Expect(di).To(beFailed("ConfigMap " + w.namespace + "/frozen"))
		Expect(di).To(beFailed("data"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed", "2 failed"}), "a rejected object ends the job at the first attempt [Ex14]")
		Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"a": "2"}, settings(map[string]any{"force": true})))).To(beSucceeded())
		Expect(w.read(ctx, "frozen")).To(HaveKeyWithValue("a", "2"))
	})

	It("validates values against the schema before the first write, unless this is disabled [E10]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"values.schema.json": `{"properties": {"color": {"enum": ["blue"]}}}`})
		values := map[string]any{"color": "s3cr3t-color"}
		before := w.counter.Snapshot()
		di := w.deploy(ctx, "item", w.helmMode(files, values, nil))
		Expect(di).To(beFailed("spec.config.values: values.schema.json of chart test: color must be one of the values that the schema lists"))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.update(ctx, "item", w.helmMode(files, values, settings(map[string]any{"skipSchemaValidation": true})))).To(beSucceeded())
	})

	It("runs no hooks if they are disabled [Ex24]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-install,pre-delete", "")})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, config{"deployerkit": map[string]any{"disableHooks": true}}))).To(beSucceeded())
		w.remove(ctx, "item")
		Expect(w.Get(ctx, w.key("slow"), &corev1.Pod{})).To(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("deletes the objects that only a failed revision contains [Ex9]", func(ctx SpecContext) {
		w := newWorld(ctx)
		broken := simple.With(charttest.Files{"templates/h.yaml": hook("broken", "post-upgrade", ""), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"})
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		await := w.trigger(ctx, "item", w.helmMode(broken, nil, nil))
		w.endPod(ctx, "broken", corev1.PodFailed)
		Expect(await()).To(beFailed("post-upgrade hook Pod broken"))
		Expect(w.Get(ctx, w.key("more"), &corev1.ConfigMap{})).To(Succeed())
		Expect(w.update(ctx, "item", w.helmMode(simple, map[string]any{"color": "red"}, nil))).To(beSucceeded())
		Expect(w.Get(ctx, w.key("more"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
	})

	It("hides values in errors and records [Ex25]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"templates/s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: \"{{ .Values.ip }}\", ports: [{port: 80}]}\n"}
		di := w.deploy(ctx, "item", w.helmMode(files, map[string]any{"ip": "s3cr3t-value"}, nil))
		Expect(di).To(beFailed("Service " + w.namespace + "/s"))
		status, err := json.Marshal(di.Status)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(status)).NotTo(ContainSubstring("s3cr3t"))
		record, err := release.NewStorage(w, w.namespace, "web").Get(ctx, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Description()).To(HavePrefix("install failed: "))
		Expect(record.Description()).NotTo(ContainSubstring("s3cr3t"))
	})

	It("deletes a release although the configuration is invalid [Ex17]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.landscaper.Update(ctx, w.key("item"), config{"kind": "Nonsense"})).To(Succeed())
		w.remove(ctx, "item")
		Expect(w.read(ctx, "fixed")).To(BeNil())
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	It("takes over a release with the same chart and values without a new revision [E27]", func(ctx SpecContext) {
		w := newWorld(ctx)
		values := map[string]any{"color": "red"}
		Expect(w.deploy(ctx, "item", w.helmMode(simple, values, nil))).To(beSucceeded())
		w.manager.Stop()
		di := &lsv1alpha1.DeployItem{}
		di.Namespace, di.Name = w.namespace, "item"
		Expect(w.Status().Patch(ctx, di, client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerStatus":null}}`)))).To(Succeed())
		w.start()
		Expect(w.again(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
		w.remove(ctx, "item")
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})

	It("waits for an operation of another client [Ex8]", func(ctx SpecContext) {
		w := newWorld(ctx)
		labels := map[string]string{"owner": "helm", "name": "web", "status": "pending-install", "version": "1"}
		secret := &corev1.Secret{Type: "helm.sh/release.v1"}
		secret.Namespace, secret.Name, secret.Labels = w.namespace, "sh.helm.release.v1.web.v1", labels
		Expect(w.Create(ctx, secret)).To(Succeed())
		w.create(ctx, "item", w.helmMode(simple, nil, nil))
		Consistently(w.revisions(ctx, "web")).WithTimeout(2 * time.Second).Should(Equal([]string{"1 pending-install"}))
		Expect(w.Delete(ctx, secret)).To(Succeed())
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("creates definitions on installation, and replaces them only if requested [Ex22]", func(ctx SpecContext) {
		w := newWorld(ctx)
		group := w.namespace + ".example.com"
		changed := func(description string) charttest.Files {
			return simple.With(charttest.Files{"crds/a.yaml": strings.Replace(definition(group), "type: object,", "type: object, description: "+description+",", 1)})
		}
		description := func() string {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(crdKind)
			Expect(w.Get(ctx, client.ObjectKey{Name: "widgets." + group}, object)).To(Succeed())
			versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
			text, _, _ := unstructured.NestedString(versions[0].(map[string]any), "schema", "openAPIV3Schema", "description")
			return text
		}
		Expect(w.deploy(ctx, "item", w.helmMode(changed("one"), nil, nil))).To(beSucceeded())
		Expect(description()).To(Equal("one"))
		Expect(w.update(ctx, "item", w.helmMode(changed("two"), nil, nil))).To(beSucceeded())
		Expect(description()).To(Equal("one"))
		replace := config{"deployerkit": map[string]any{"crds": map[string]any{"upgrade": "CreateReplace"}}}
		Expect(w.update(ctx, "item", w.helmMode(changed("three"), nil, replace))).To(beSucceeded())
		Expect(description()).To(Equal("three"))
		By("refusing to remove a version in which objects are stored")
		dropped := simple.With(charttest.Files{"crds/a.yaml": strings.Replace(definition(group), "name: v1", "name: v2", 1)})
		Expect(w.update(ctx, "item", w.helmMode(dropped, nil, replace))).To(beFailed("does not contain the version v1, in which objects are stored"))
		w.remove(ctx, "item")
		Expect(description()).To(Equal("three"))
	})
})
