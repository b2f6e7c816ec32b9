// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// drift returns a configuration with settings for drift.
func drift(settings map[string]any) config {
	return config{"deployerkit": map[string]any{"drift": settings}}
}

// condition returns a function that reads the message of a condition of the item, or "" if the item does not have it.
func (w *world) condition(ctx context.Context, name string, t string) func(Gomega) string {
	return func(g Gomega) string {
		di, err := w.landscaper.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		for _, condition := range di.Status.Conditions {
			if string(condition.Type) == t {
				return condition.Message
			}
		}
		return ""
	}
}

// events returns a function that reads the notes of the events with a reason.
func (w *world) events(ctx context.Context, reason string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		var notes []string
		for i := range list.Items {
			if list.Items[i].Reason == reason {
				notes = append(notes, list.Items[i].Note)
			}
		}
		return notes
	}
}

// waitUntilSeen waits until the deployer has handled all changes that a test has made: it changes an object of a second
// item and waits until the deployer has corrected it.
func (w *world) waitUntilSeen(ctx context.Context) {
	GinkgoHelper()
	marker := charttest.Files{"templates/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: marker}\ndata: {a: b}\n"}
	if _, err := w.landscaper.Get(ctx, w.key("marker")); err != nil {
		Expect(w.deploy(ctx, "marker", w.manifestMode(marker, nil, nil))).To(beSucceeded())
	}
	w.edit(ctx, "marker", func(cm *corev1.ConfigMap) { cm.Data["a"] = "x" })
	Eventually(w.data(ctx, "marker")).Should(HaveKeyWithValue("a", "b"))
}

var _ = Describe("Drift", func() {
	green := func(cm *corev1.ConfigMap) { cm.Data["color"] = "green" }

	for _, mode := range []string{"Helm mode", "manifest mode"} {
		It("is reported only if the mode is Warn, in "+mode+" [Ex21]", func(ctx SpecContext) {
			w := newWorld(ctx)
			configuration := func(values map[string]any) config {
				if mode == "Helm mode" {
					return w.helmMode(simple, values, drift(map[string]any{"mode": "Warn"}))
				}
				return w.manifestMode(simple, values, drift(map[string]any{"mode": "Warn"}))
			}
			Expect(w.deploy(ctx, "item", configuration(nil))).To(beSucceeded())
			before := w.counter.Snapshot()
			w.edit(ctx, "colors", green)
			Eventually(w.condition(ctx, "item", string(helm.ConditionDrift))).Should(ContainSubstring("ConfigMap " + w.namespace + "/colors"))
			Eventually(w.events(ctx, "Drift")).Should(ContainElement(ContainSubstring("deployerkit.drift.mode is Warn")))
			Expect(w.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fixed"}})).To(Succeed())
			Eventually(w.condition(ctx, "item", string(helm.ConditionDrift))).Should(ContainSubstring("/fixed"))
			Expect(w.again(ctx, "item")).To(beSucceeded())
			Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "green"))
			Expect(w.read(ctx, "fixed")).To(BeNil())
			_, writes := w.spent(before)
			Expect(writes).To(BeZero(), "the number of writes")

			By("correcting it with the next change")
			Expect(w.update(ctx, "item", configuration(map[string]any{"more": true}))).To(beSucceeded())
			Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
			Expect(w.read(ctx, "fixed")).NotTo(BeNil())
			Eventually(w.condition(ctx, "item", string(helm.ConditionDrift))).Should(BeEmpty())

			By("correcting it on request")
			w.edit(ctx, "colors", green)
			Eventually(w.condition(ctx, "item", string(helm.ConditionDrift))).Should(ContainSubstring("/colors"))
			Expect(w.landscaper.SetOperation(ctx, w.key("item"), "force-reconcile")).To(Succeed())
			Eventually(w.data(ctx, "colors")).Should(HaveKeyWithValue("color", "blue"))
		})
	}

	It("is ignored in the fields that a rule selects, also by later revisions [Ex21]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"values.yaml": "color: blue\nsize: small\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: colors, labels: {app: web}}\ndata: {color: \"{{ .Values.color }}\", size: \"{{ .Values.size }}\"}\n"}
		rules := drift(map[string]any{"ignore": []any{
			map[string]any{"kind": "ConfigMap", "labelSelector": "app=web", "paths": []any{"/data/color", "/data/missing"}},
			map[string]any{"group": "apps", "paths": []any{"/data/size"}},
		}})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, rules))).To(beSucceeded())
		w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["color"], cm.Data["size"] = "green", "large" })
		Eventually(w.data(ctx, "colors")).Should(Equal(map[string]string{"color": "green", "size": "small"}))
		By("changing the field again, which the item no longer owns")
		before := w.counter.Snapshot()
		w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["color"] = "yellow" })
		w.waitUntilSeen(ctx)
		Expect(w.again(ctx, "item")).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "yellow"))
		Expect(w.counter.Snapshot().Since(before).ForObject("configmaps", w.namespace, "colors").Sum()).To(BeZero(), "the number of requests")
		By("changing the values")
		Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"color": "red", "size": "medium"}, rules))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(Equal(map[string]string{"color": "yellow", "size": "medium"}))
		By("removing the rules")
		Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"color": "white"}, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(Equal(map[string]string{"color": "white", "size": "small"}))
	})

	It("is ignored in elements of lists, and in objects with the annotation [Ex21]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{
			"templates/p.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: main}\nspec: {containers: [{name: a, image: a}, {name: c, image: c}]}\n",
			"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors, annotations: {helm.deployerkit.dev/drift: ignore}}\ndata: {color: \"{{ .Values.color }}\"}\n",
		})
		rules := drift(map[string]any{"ignore": []any{map[string]any{"name": "main", "paths": []any{"/spec/containers/1/image"}}}})
		w.create(ctx, "item", w.helmMode(files, nil, rules))
		w.makeReady(ctx, "main")
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		pod := &corev1.Pod{}
		Expect(w.Get(ctx, w.key("main"), pod)).To(Succeed())
		pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image = "x", "y"
		Expect(w.Update(ctx, pod, client.FieldOwner("kubectl-edit"))).To(Succeed())
		w.edit(ctx, "colors", green)
		Eventually(func(g Gomega) {
			g.Expect(w.Get(ctx, w.key("main"), pod)).To(Succeed())
			g.Expect([]string{pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image}).To(Equal([]string{"a", "y"}))
		}).Should(Succeed())
		Expect(w.again(ctx, "item")).To(beSucceeded())
		before := w.counter.Snapshot()
		Expect(w.again(ctx, "item")).To(beSucceeded())
		reads, writes := w.spent(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "the numbers of reads and writes")
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "green"))
		Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"color": "red"}, rules))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "red"))
	})

	It("does not include fields that the chart does not set, and hooks [Ex21]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\ndata: {color: blue}\n"})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		w.waitUntilSeen(ctx)
		before := w.counter.Snapshot()
		w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["added"], cm.Labels["added"] = "x", "y" })
		w.edit(ctx, "hook", green)
		w.waitUntilSeen(ctx)
		Expect(w.again(ctx, "item")).To(beSucceeded())
		got := w.counter.Snapshot().Since(before)
		Expect(got.ForObject("configmaps", w.namespace, "colors").Sum()+got.ForObject("configmaps", w.namespace, "hook").Sum()).To(BeZero(), "the number of requests")
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("added", "x"))
		Expect(w.read(ctx, "hook")).To(HaveKeyWithValue("color", "green"))
	})
})

// short is the time for which a test checks that nothing happens.
const short = time.Second
