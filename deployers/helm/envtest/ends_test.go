// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

var _ = Describe("The end of an operation", func() {
	// The hook never ends by itself, and the timeout of most items is longer than any wait of a spec.
	slow := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-install", "")})

	// started waits until the hook of the operation runs.
	started := func(ctx SpecContext, w *world) {
		GinkgoHelper()
		Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
	}

	It("marks the record as failed when the deployer stops [Ex10]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", w.helmMode(slow, nil, nil))
		started(ctx, w)
		w.manager.Stop()
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed"}))
		record, err := release.NewStorage(w, w.namespace, "web").Get(ctx, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Description()).To(Equal("install failed: the deployer was stopped"))
	})

	It("marks the record as failed when the item is aborted [Ex10]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", w.helmMode(slow, nil, nil))
		started(ctx, w)
		Expect(w.landscaper.SetOperation(ctx, w.key("item"), contract.AbortOperation)).To(Succeed())
		Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 failed"}))
		Expect(w.finished(ctx, "item").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
	})

	It("is not awaited by a worker [Ex12]", func(ctx SpecContext) {
		w := newWorld(ctx) // the deployer has few workers
		const items = 10
		for i := range items {
			name := fmt.Sprintf("slow%d", i)
			files := simple.With(charttest.Files{"templates/h.yaml": hook(name, "pre-install", "")})
			delete(files, "templates/a.yaml")
			delete(files, "templates/b.yaml")
			w.create(ctx, name, w.helmMode(files, nil, config{"name": name}))
		}
		for i := range items {
			Eventually(w.revisions(ctx, fmt.Sprintf("slow%d", i))).Should(Equal([]string{"1 pending-install"}))
		}
		Expect(w.deploy(ctx, "fast", w.helmMode(simple, nil, nil))).To(beSucceeded())
		for i := range items {
			w.endPod(ctx, fmt.Sprintf("slow%d", i), corev1.PodSucceeded)
		}
		for i := range items {
			Expect(w.finished(ctx, fmt.Sprintf("slow%d", i))).To(beSucceeded())
		}
	})
})
