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
		b := stategraph.NewBuilder()
		for i, name := range newNames("part", n) {
			if i < 2 {
				b.Add(name, newConfigMap(name))
			} else {
				b.Add(name, newConfigMap(name), newNames("part", n)[i/2])
			}
		}
		w := newEnv(ctx, contract.RevisionJobID).start(build(b))
		before := w.Counter.Snapshot()
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		reads, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(n), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(reads).To(BeNumerically("<=", 1), "the only read is that of kube-system: %s", w.Counter.Snapshot().Since(before))

		By("running a job without changes")
		before = w.Counter.Snapshot()
		w.rerunSuccessfully(ctx, "item")
		reads, writes = w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		Consistently(func() int { reads, writes := w.GetRequestCounts(before); return reads + writes }).WithTimeout(time.Second).Should(BeZero())

		By("editing an object")
		w.updateValue(ctx, "item-part-7", "by hand")
		Eventually(w.getValue(ctx, "item-part-7")).WithTimeout(patience).Should(Equal("a"))
		reads, writes = w.GetRequestCounts(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 1}), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("sends no request for fields that Kubernetes and controllers fill [Y19]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(newGaleraGraph())
		w.begin(ctx, "galera", w.newGaleraConfig(1, "100"))
		w.createCertificates(ctx, "galera")
		w.waitUntilSucceeded(ctx, "galera")
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.rerunSuccessfully(ctx, "galera")
		reads, writes := w.GetRequestCounts(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))
})
