// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

var _ = Describe("A changed name of the release", func() {
	named := charttest.Files{
		"values.yaml":      "color: blue\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-map\"}\n",
		"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {color: \"{{ .Values.color }}\"}\n",
		"templates/h.yaml": hook("{{ .Release.Name }}-bye", "pre-delete", ""),
	}
	exists := func(ctx SpecContext, w *world, name string) bool {
		GinkgoHelper()
		err := w.Get(ctx, w.key(name), &corev1.ConfigMap{})
		if !apierrors.IsNotFound(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		return err == nil
	}

	It("uninstalls the former release with its hooks, once the new one is deployed [Ex18]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(named, nil, nil))).To(beSucceeded())
		shared := &corev1.ConfigMap{}
		Expect(w.Get(ctx, w.key("shared"), shared)).To(Succeed())
		files := named.With(charttest.Files{"templates/i.yaml": hook("hello", "post-install", "")})
		await := w.trigger(ctx, "item", w.helmMode(files, nil, config{"name": "other"}))
		Eventually(func() bool { return exists(ctx, w, "other-map") }).Should(BeTrue())
		Expect(exists(ctx, w, "web-map")).To(BeTrue())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		w.endPod(ctx, "hello", corev1.PodSucceeded)
		Eventually(w.revisions(ctx, "other")).Should(Equal([]string{"1 deployed"}))
		w.endPod(ctx, "web-bye", corev1.PodSucceeded)
		Expect(await()).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(exists(ctx, w, "web-map")).To(BeFalse())
		after := &corev1.ConfigMap{}
		Expect(w.Get(ctx, w.key("shared"), after)).To(Succeed())
		Expect(after.UID).To(Equal(shared.UID))
		Expect(after.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", "other"))
		before := w.counter.Snapshot()
		Expect(w.again(ctx, "item")).To(beSucceeded())
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
	})

	It("keeps the former release if the new one fails [Ex18]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(named, nil, nil))).To(beSucceeded())
		broken := named.With(charttest.Files{"templates/i.yaml": hook("broken", "post-install", "")})
		await := w.trigger(ctx, "item", w.helmMode(broken, map[string]any{"color": "red"}, config{"name": "other"}))
		w.endPod(ctx, "broken", corev1.PodFailed)
		Expect(await()).To(beFailed("post-install hook Pod broken"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		Expect(exists(ctx, w, "web-map")).To(BeTrue())
		Expect(exists(ctx, w, "other-map")).To(BeTrue())

		By("reverting the new release [E7]")
		c := settings(map[string]any{"atomic": true})
		c["name"] = "other"
		await = w.trigger(ctx, "item", w.helmMode(broken, map[string]any{"color": "white"}, c))
		Eventually(w.data(ctx, "shared")).Should(HaveKeyWithValue("color", "white"))
		Eventually(func(g Gomega) {
			pod := &corev1.Pod{}
			g.Expect(w.Get(ctx, w.key("broken"), pod)).To(Succeed())
			g.Expect(pod.Status.Phase).NotTo(Equal(corev1.PodFailed))
		}).Should(Succeed())
		w.endPod(ctx, "broken", corev1.PodFailed)
		w.endPod(ctx, "other-bye", corev1.PodSucceeded)
		Expect(await()).To(beFailed("post-install hook Pod broken"))
		Expect(w.history(ctx, "other")).To(BeEmpty())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		Expect(exists(ctx, w, "web-map")).To(BeTrue())
		Expect(exists(ctx, w, "other-map")).To(BeFalse())
		Expect(w.read(ctx, "shared")).To(HaveKeyWithValue("color", "blue"))

		By("returning to the former name")
		Expect(w.update(ctx, "item", w.helmMode(named, map[string]any{"color": "green"}, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
		Expect(w.read(ctx, "shared")).To(HaveKeyWithValue("color", "green"))
	})
})
