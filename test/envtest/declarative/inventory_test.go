// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/declarative"
)

var _ = Describe("an inventory that was lost", func() {
	both := config(map[string]data{"a": {"key": "1"}, "b": {"key": "1"}})

	It("is restored from the labels by the next run, which prunes [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(counting))
		w.Deploy(ctx, "item", both)
		w.Manager.Stop()
		w.LoseProviderStatus(ctx, "item")
		w.start(declarative.HandlerFunc(counting))
		w.Update(ctx, "item", config(map[string]data{"a": {"key": "1"}}))
		Eventually(w.Data(ctx, "b")).WithContext(ctx).WithTimeout(patience).Should(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("is restored from the labels by a deletion [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(counting))
		w.Deploy(ctx, "item", both)
		w.Manager.Stop()
		w.LoseProviderStatus(ctx, "item")
		w.start(declarative.HandlerFunc(counting))
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil())
		Expect(w.Read(ctx, "b")).To(BeNil())
	}, SpecTimeout(5*time.Minute))
})
