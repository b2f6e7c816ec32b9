// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
)

var _ = Describe("an inventory that was lost", func() {
	It("is restored from the labels by the next run, which prunes [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(build(chain("first", "second")))
		w.deploy(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()
		w.LoseProviderStatus(ctx, "item")
		w.start(build(chain("first")))
		w.again(ctx, "item")
		Eventually(w.alive(ctx, "item-first", "item-second")).WithContext(ctx).WithTimeout(patience).Should(ConsistOf("item-first"))
	}, SpecTimeout(5*time.Minute))

	It("is restored from the labels by a deletion [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(build(chain("first", "second")))
		w.deploy(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()
		w.LoseProviderStatus(ctx, "item")
		w.start(build(chain("first", "second")))
		w.Delete(ctx, "item")
		Expect(w.alive(ctx, "item-first", "item-second")(NewWithT(GinkgoTB()))).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})
