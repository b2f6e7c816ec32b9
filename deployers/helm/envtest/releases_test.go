// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// helmMode returns the configuration of an item in Helm mode.
func (w *world) helmMode(files charttest.Files, values map[string]any, more config) config {
	out := w.manifestMode(files, values, more)
	delete(out, "helmDeployment")
	return out
}

// revisions returns a function that reads the revisions of a release, each as "number status".
func (w *world) revisions(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		found, err := release.NewStorage(w, w.namespace, name).List(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		out := []string{}
		for _, one := range found {
			out = append(out, fmt.Sprintf("%d %s", one.Number, one.Status))
		}
		return out
	}
}

// history reads the revisions of a release once.
func (w *world) history(ctx context.Context, name string) []string {
	GinkgoHelper()
	return w.revisions(ctx, name)(NewWithT(GinkgoT()))
}

// hook returns a template for a hook: a Pod that a test completes.
func hook(name, events, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {helm.sh/hook: \"%s\"%s}}\nspec: {containers: [{name: c, image: c}]}\n", name, events, more)
}

// endPod waits for a Pod and sets its phase.
func (w *world) endPod(ctx context.Context, name string, phase corev1.PodPhase) {
	GinkgoHelper()
	Eventually(func() error {
		pod := &corev1.Pod{}
		if err := w.Get(ctx, w.key(name), pod); err != nil {
			return err
		}
		if pod.Status.Phase == phase {
			return fmt.Errorf("the Pod has ended already")
		}
		pod.Status.Phase = phase
		if phase == corev1.PodFailed {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}
		}
		return w.Status().Update(ctx, pod)
	}).Should(Succeed())
}

// create creates an item without waiting for the end of its job.
func (w *world) create(ctx context.Context, name string, c config) {
	GinkgoHelper()
	di := w.landscaper.Item(w.namespace, name, w.itemType, c)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	Expect(w.landscaper.Deploy(ctx, di)).To(Succeed())
}

// trigger changes the configuration of an item without waiting for the end of the next job.
func (w *world) trigger(ctx context.Context, name string, c config) (await func() *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Expect(w.landscaper.Update(ctx, w.key(name), c)).To(Succeed())
	job, err := w.landscaper.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return func() *lsv1alpha1.DeployItem {
		GinkgoHelper()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		di, err := w.landscaper.WaitForJob(ctx, w.key(name), job)
		Expect(err).NotTo(HaveOccurred())
		return di
	}
}

var _ = Describe("Helm mode", func() {
	It("installs, upgrades and uninstalls a release, also with empty values [Ex5]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		cm := &corev1.ConfigMap{}
		Expect(w.Get(ctx, w.key("colors"), cm)).To(Succeed())
		Expect(cm.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "Helm"))
		Expect(cm.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", "web"))

		By("changing one of two objects [Ex4]")
		before := w.counter.Snapshot()
		Expect(w.update(ctx, "item", w.helmMode(simple, map[string]any{"color": "red"}, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "red"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
		_, writes := w.spent(before)
		Expect(writes).To(Equal(4), "the number of writes: one object, and three records")

		By("removing all values")
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))

		By("deleting the item [E31]")
		w.remove(ctx, "item")
		Expect(w.read(ctx, "colors")).To(BeNil())
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	It("sends no request to the target if nothing has changed [Ex1]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		before, fetched := w.counter.Snapshot(), w.fetched.count
		Expect(w.again(ctx, "item")).To(beSucceeded())
		reads, writes := w.spent(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "the numbers of reads and writes")
		Expect(w.fetched.count).To(Equal(fetched), "the number of fetched archives")
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("only reads after a restart if nothing has changed [Ex2]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		w.manager.Stop()
		before := w.counter.Snapshot()
		w.start()
		Expect(w.again(ctx, "item")).To(beSucceeded())
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("corrects a change by another writer with one write, without a revision [Ex20]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		before := w.counter.Snapshot()
		w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["color"] = "green" })
		Eventually(w.data(ctx, "colors")).Should(HaveKeyWithValue("color", "blue"))
		_, writes := w.spent(before)
		Expect(writes).To(Equal(1), "the number of writes")
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("keeps objects with the policy keep when the item is deleted [E31]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		w.remove(ctx, "item")
		Expect(w.Get(ctx, w.key("kept"), &corev1.ConfigMap{})).To(Succeed())
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})

	It("runs hooks in the order of their weights, and deletes them according to their policies", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{
			"templates/h1.yaml": hook("second", "pre-install", ", helm.sh/hook-weight: \"2\", helm.sh/hook-delete-policy: hook-succeeded"),
			"templates/h2.yaml": hook("first", "pre-install", ", helm.sh/hook-weight: \"-1\""),
			"templates/h3.yaml": hook("last", "post-delete", ""),
		})
		w.create(ctx, "item", w.helmMode(files, nil, nil))
		Eventually(func() error { return w.Get(ctx, w.key("first"), &corev1.Pod{}) }).Should(Succeed())
		Expect(w.Get(ctx, w.key("second"), &corev1.Pod{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 pending-install"}))
		w.endPod(ctx, "first", corev1.PodSucceeded)
		w.endPod(ctx, "second", corev1.PodSucceeded)
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.Get(ctx, w.key("first"), &corev1.Pod{})).To(Succeed())
		Expect(w.read(ctx, "fixed")).NotTo(BeNil())

		By("running a hook after the deletion")
		done := make(chan any)
		go func() {
			defer GinkgoRecover()
			defer close(done)
			w.remove(ctx, "item")
		}()
		w.endPod(ctx, "last", corev1.PodSucceeded)
		Eventually(done).Should(BeClosed())
		Expect(w.read(ctx, "fixed")).To(BeNil())
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	It("fails if a hook fails, and names its container [Ex16]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/h.yaml": hook("broken", "pre-install", "")})
		w.create(ctx, "item", w.helmMode(files, nil, nil))
		w.endPod(ctx, "broken", corev1.PodFailed)
		di := w.finished(ctx, "item")
		Expect(di).To(beFailed("install of chart test 1.0.0 failed: pre-install hook Pod broken: failed (container c ended with exit code 3: Error)"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed"}))
		Expect(w.read(ctx, "fixed")).To(BeNil())
		By("trying again in the next job")
		await := w.trigger(ctx, "item", w.helmMode(simple, nil, nil))
		Expect(await()).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 deployed"}))
	})

	It("rolls back a failed upgrade, and uninstalls a failed installation, if atomic is set [E7]", func(ctx SpecContext) {
		w := newWorld(ctx)
		atomic := config{"helmDeploymentConfig": map[string]any{"install": map[string]any{"atomic": true}, "upgrade": map[string]any{"atomic": true}}}
		broken := simple.With(charttest.Files{"templates/h.yaml": hook("broken", "post-install,post-upgrade", ""), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"})
		w.create(ctx, "item", w.helmMode(broken, nil, atomic))
		w.endPod(ctx, "broken", corev1.PodFailed)
		Expect(w.finished(ctx, "item")).To(beFailed("install of chart test 1.0.0 failed: post-install hook Pod broken"))
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(w.read(ctx, "fixed")).To(BeNil())

		Expect(w.update(ctx, "item", w.helmMode(simple, nil, atomic))).To(beSucceeded())
		await := w.trigger(ctx, "item", w.helmMode(broken, map[string]any{"color": "red"}, atomic))
		w.endPod(ctx, "broken", corev1.PodFailed)
		Expect(await()).To(beFailed("upgrade of chart test 1.0.0 failed: post-upgrade hook Pod broken"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
		Expect(w.Get(ctx, w.key("more"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("refuses objects of other owners before the first write, unless takeOwnership is set [E11]", func(ctx SpecContext) {
		w := newWorld(ctx)
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fixed"}, Data: map[string]string{"a": "x"}}
		Expect(w.Create(ctx, foreign)).To(Succeed())
		before := w.counter.Snapshot()
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beFailed("fixed exists already and belongs to no release"))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, config{"helmDeploymentConfig": map[string]any{"install": map[string]any{"takeOwnership": true}}}))).To(beSucceeded())
		Expect(w.read(ctx, "fixed")).To(Equal(map[string]string{"a": "b"}))
	})

	It("marks the record of an operation as failed if the deployer was killed, and starts another one [Ex7] [Ex8]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-install", "")})
		w.create(ctx, "item", w.helmMode(files, nil, nil))
		Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
		w.kill()
		w.start()
		Eventually(w.revisions(ctx, "web")).Should(HaveLen(2))
		w.endPod(ctx, "slow", corev1.PodSucceeded)
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 deployed"}))
	})

	It("marks the record of an operation as failed if the job is interrupted [Ex10]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		files := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-upgrade", "")})
		w.trigger(ctx, "item", w.helmMode(files, nil, nil))
		Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
		Expect(w.landscaper.Interrupt(ctx, w.key("item"))).To(Succeed())
		Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 deployed", "2 failed"}))
	})

	It("answers a revision of another client with one upgrade [Ex6]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.again(ctx, "item")).To(beSucceeded())
		secret := &corev1.Secret{}
		Expect(w.Get(ctx, w.key("sh.helm.release.v1.web.v1"), secret)).To(Succeed())
		labels := map[string]string{"owner": "helm", "name": "web", "status": "deployed", "version": "2"}
		Expect(w.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sh.helm.release.v1.web.v2", Labels: labels}, Type: secret.Type, Data: secret.Data})).To(Succeed())
		Eventually(w.revisions(ctx, "web")).Should(ContainElement("3 deployed"))
		By("deleting all records")
		Expect(w.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 deployed"}))
	})

	It("keeps at most ten revisions [E13]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		for i := range 11 {
			Expect(w.update(ctx, "item", w.helmMode(simple, map[string]any{"color": strings.Repeat("x", i+1)}, nil))).To(beSucceeded())
		}
		history := w.history(ctx, "web")
		Expect(history).To(HaveLen(10))
		Expect(history[0]).To(Equal("3 superseded"))
		Expect(history[9]).To(Equal("12 deployed"))
	})

	It("keeps all objects when the mode changes [Ex19]", func(ctx SpecContext) {
		w := newWorld(ctx)
		uid := func() string {
			cm := &corev1.ConfigMap{}
			Expect(w.Get(ctx, w.key("fixed"), cm)).To(Succeed())
			return string(cm.UID)
		}
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		before := uid()
		Expect(w.update(ctx, "item", w.manifestMode(simple, nil, nil))).To(beSucceeded())
		Expect(uid()).To(Equal(before))
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(uid()).To(Equal(before))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("uninstalls the old release after the name has changed [Ex18]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-map\"}\n"}
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		Expect(w.update(ctx, "item", w.helmMode(files, nil, config{"name": "other"}))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(w.history(ctx, "other")).To(Equal([]string{"1 deployed"}))
		Expect(w.Get(ctx, w.key("web-map"), &corev1.ConfigMap{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		Expect(w.Get(ctx, w.key("other-map"), &corev1.ConfigMap{})).To(Succeed())
	})
})
