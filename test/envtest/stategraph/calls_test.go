// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

var _ = Describe("Requests of a graph deployer", func() {
	It("sends one request per object at first, none when nothing changes, and one for each changed object [Y6, Y18]", func(ctx SpecContext) {
		const n = 50
		b := stategraph.NewGraph()
		for i, name := range numbered("part", n) {
			if i < 2 {
				b.Add(name, configMap(name))
			} else {
				b.Add(name, configMap(name), numbered("part", n)[i/2])
			}
		}
		w := newEnv(ctx, contract.RevisionJobID).start(build(b))
		before := w.Counter.Snapshot()
		w.deploy(ctx, "item", settings{Value: "a"})
		reads, writes := w.Spent(before)
		Expect(writes).To(Equal(n), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(reads).To(BeNumerically("<=", 1), "the only read is that of kube-system: %s", w.Counter.Snapshot().Since(before))

		By("running a job without changes")
		before = w.Counter.Snapshot()
		w.again(ctx, "item")
		reads, writes = w.Spent(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		Consistently(func() int { reads, writes := w.Spent(before); return reads + writes }).WithTimeout(time.Second).Should(BeZero())

		By("editing an object")
		w.edit(ctx, "item-part-7", "by hand")
		Eventually(w.value(ctx, "item-part-7")).WithTimeout(patience).Should(Equal("a"))
		reads, writes = w.Spent(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 1}), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("sends no request for fields that Kubernetes and controllers fill [Y19]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(galeraGraph())
		w.begin(ctx, "galera", w.galeraConfig(1, "100"))
		w.issue(ctx, "galera")
		w.succeeded(ctx, "galera")
		w.AwaitQuiet(ctx)
		before := w.Counter.Snapshot()
		w.again(ctx, "galera")
		reads, writes := w.Spent(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))
})
