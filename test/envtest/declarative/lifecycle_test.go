// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/declarative"
)

var _ = Describe("Life of an item", func() {
	It("creates children that the handler returns, changes those that differ, and deletes those that it no longer returns [R13, R14, R16, R26]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		foreign := &corev1.ConfigMap{Data: data{"key": "theirs"}}
		foreign.Namespace, foreign.Name = w.Namespace, "foreign"
		Expect(w.Client.Create(ctx, foreign)).To(Succeed())
		di := w.CreateAndRun(ctx, "item", config(map[string]map[string]string{"a": {"key": "1"}, "b": {"key": "1"}}))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		a, b := w.Read(ctx, "a"), w.Read(ctx, "b")
		Expect(a.Data).To(Equal(data{"key": "1"}))
		Expect(b.Data).To(Equal(data{"key": "1"}))

		w.WaitUntilQuiet(ctx)
		reads, writes := w.GetRequestCounts(nil)
		Expect([]int{reads, writes}).To(Equal([]int{1, 2}), "expected requests: one write for each child, and the read of kube-system: %s", w.Counter.Snapshot())

		By("updating the item")
		before := w.Counter.Snapshot()
		w.Update(ctx, "item", config(map[string]map[string]string{"a": {"key": "1"}, "c": {"key": "2"}}))
		Expect(w.Read(ctx, "a").ResourceVersion).To(Equal(a.ResourceVersion), "nothing differs")
		Expect(w.Read(ctx, "b")).To(BeNil())
		Expect(w.Read(ctx, "c").Data).To(Equal(data{"key": "2"}))
		w.WaitUntilQuiet(ctx)
		reads, writes = w.GetRequestCounts(before)
		Expect(writes).To(Equal(2), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(reads).To(BeNumerically("<=", 1), "docs/declarative.md promises this limit: %s", w.Counter.Snapshot().Since(before))

		By("deleting the item [R1, R2]")
		before = w.Counter.Snapshot()
		w.Delete(ctx, "item")
		reads, writes = w.GetRequestCounts(before)
		Expect(writes).To(Equal(2), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(reads).To(BeNumerically("<=", 2), "docs/declarative.md promises this limit: %s", w.Counter.Snapshot().Since(before))
		Expect(w.Read(ctx, "a")).To(BeNil())
		Expect(w.Read(ctx, "c")).To(BeNil())
		Expect(w.Read(ctx, "foreign").Data).To(Equal(data{"key": "theirs"}), "not ours")
	}, SpecTimeout(5*time.Minute))
})
