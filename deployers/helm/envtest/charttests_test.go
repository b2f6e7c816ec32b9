// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

var _ = Describe("Tests of a chart", func() {
	files := simple.With(charttest.Files{
		"templates/tests/a.yaml": hook("check", "test", ""), "templates/tests/b.yaml": hook("other", "test", ""),
		"templates/p.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: main}\nspec: {containers: [{name: c, image: c}]}\n",
	})
	configuration := func(w *world, color string) config {
		c := settings(map[string]any{"atomic": true})
		c["deployerkit"] = map[string]any{"test": map[string]any{"enable": true, "exclude": []any{"other"}}}
		return w.helmMode(files, map[string]any{"color": color}, c)
	}
	results := func(di *lsv1alpha1.DeployItem) []helm.TestResult {
		GinkgoHelper()
		_, last, err := helm.DecodeStatus(di)
		Expect(err).NotTo(HaveOccurred())
		return last.Tests
	}

	It("run once for each revision, when its objects are ready, and a failure rolls it back [Ex23]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", configuration(w, "blue"))
		Eventually(func() error { return w.Get(ctx, w.key("main"), &corev1.Pod{}) }).Should(Succeed())
		Consistently(func() error { return w.Get(ctx, w.key("check"), &corev1.Pod{}) }).WithTimeout(short).Should(MatchError(apierrors.IsNotFound, "is not found"))
		w.makeReady(ctx, "main")
		w.endPod(ctx, "check", corev1.PodSucceeded)
		di := w.finished(ctx, "item")
		Expect(di).To(beSucceeded())
		Expect(results(di)).To(Equal([]helm.TestResult{{Name: "check", Phase: "Succeeded"}}))
		Expect(w.Get(ctx, w.key("other"), &corev1.Pod{})).To(MatchError(apierrors.IsNotFound, "is not found"))
		pod := &corev1.Pod{}
		Expect(w.Get(ctx, w.key("check"), pod)).To(Succeed())
		Expect(w.again(ctx, "item")).To(beSucceeded())
		after := &corev1.Pod{}
		Expect(w.Get(ctx, w.key("check"), after)).To(Succeed())
		Expect(after.UID).To(Equal(pod.UID), "the UID of the Pod of the test")

		By("failing in the next revision")
		await := w.trigger(ctx, "item", configuration(w, "red"))
		Eventually(func(g Gomega) {
			g.Expect(w.Get(ctx, w.key("check"), after)).To(Succeed())
			g.Expect(after.UID).NotTo(Equal(pod.UID))
		}).Should(Succeed())
		w.endPod(ctx, "check", corev1.PodFailed)
		di = await()
		Expect(di).To(beFailed("upgrade of chart test 1.0.0 failed: test hook Pod check: failed (container c ended with exit code 3: Error)"))
		Expect(results(di)).To(Equal([]helm.TestResult{{Name: "check", Phase: "Failed"}}))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
	})

	It("do not run unless they are requested [Ex23]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple.With(charttest.Files{"templates/tests/a.yaml": hook("check", "test", "")}), nil, nil))).To(beSucceeded())
		Expect(w.Get(ctx, w.key("check"), &corev1.Pod{})).To(MatchError(apierrors.IsNotFound, "is not found"))
	})
})
