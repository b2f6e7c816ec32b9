// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

var _ = Describe("Strategy OnDelete", func() {
	It("creates an object, changes it only after another client has deleted it, and sends no request with a watch [R15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.apply(ctx)
		first, second := w.configMap("a", "key", "1", "old", "yes"), w.configMap("a", "key", "2")
		created := w.recordRequests(func() { w.apply(ctx, first) })
		Expect(created).To(matchWrites(1), created.String())
		w.patchConfigMap(ctx, "a", `{"data":{"old":"by hand"}}`)
		before := w.get(ctx, "a")
		Expect(w.recordRequests(func() {
			report := w.apply(ctx, second)
			Expect(report.Unchanged).To(Equal(1))
			Expect(report.Owned).To(ConsistOf(SatisfyAll(HaveField("UID", before.UID), HaveField("Fingerprint", BeEmpty()))))
		})).To(matchWrites(0))
		Expect(w.newEngine().ListOwned(w.stored)).To(ConsistOf(SatisfyAll(HaveField("UID", before.UID), HaveField("Fingerprint", BeEmpty()))))
		w.options.Force = true
		spent := w.recordRequests(func() { w.apply(ctx, second) })
		Expect(spent.OnlyReads().Sum()).To(Equal(1))
		Expect(spent).To(matchWrites(1), spent.String())
		Expect(w.get(ctx, "a")).To(Equal(before))

		w.options.Force = false
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		w.apply(ctx, second)
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "2"}))
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("leaves an object that is being deleted until it is gone [Rx3]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.apply(ctx, w.configMap("a", "key", "1"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		before := w.get(ctx, "a")
		Expect(w.recordRequests(func() {
			w.expectWaiting(ctx, "held by finalizers example.org/held, "+comesAgain, w.configMap("a", "key", "2"))
		})).To(matchWrites(0))
		watches := w.options.Watched
		w.options.Watched = nil
		w.expectWaiting(ctx, comesAgain, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a")).To(Equal(before))
		w.options.Watched = watches
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "2"))
	})

	It("restores a removed owner label, and changes nothing else [Rx14]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.apply(ctx, w.configMap("a", "key", "1"))
		before := w.get(ctx, "a")
		w.patchConfigMap(ctx, "a", `{"metadata":{"labels":null},"data":{"key":"by hand"}}`)
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.listOwned(ctx)).To(ConsistOf("a"))
		Expect(w.get(ctx, "a").UID).To(Equal(before.UID))
		Expect(w.get(ctx, "a").Annotations).To(Equal(before.Annotations))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "by hand"}))
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "2")) })).To(matchWrites(0))
	})

	It("changes no object of the item although the inventory was lost, or the item was created again", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.apply(ctx, w.configMap("a", "key", "1"))
		before := w.get(ctx, "a")
		w.stored = apply.Inventory{}
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a")).To(Equal(before))

		again := w.newOtherItem()
		again.owner = w.owner
		again.owner.UID = "another-life"
		again.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(Equal(before.Data))
		Expect(w.get(ctx, "a").Labels).To(HaveKeyWithValue(ownership.LabelItem, "another-life"))
		Expect(again.recordRequests(func() { again.apply(ctx, w.configMap("a", "key", "3")) })).To(matchWrites(0))
		again.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("adopts an object without an owner, and refuses an object of another item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.createForeign(ctx, "a", "key", "theirs", "more", "theirs")
		w.apply(ctx, w.configMap("a", "key", "1"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "1", "more": "theirs"}))
		Expect(w.listReasons()).To(ConsistOf(apply.ReasonAdopted))
		before := w.get(ctx, "a")
		thief := w.newOtherItem()
		thief.options.Strategy = apply.StrategyOnDelete
		_, err := thief.try(ctx, w.configMap("a", "key", "2"))
		Expect(err).To(MatchError(ContainSubstring("items/item")))
		thief.delete(ctx)
		Expect(w.get(ctx, "a")).To(Equal(before))
	})

	It("writes the current manifest when the strategy changes to Apply", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, withStrategy(w.configMap("a", "key", "1", "old", "yes"), apply.StrategyOnDelete))
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "2"}))
		Expect(w.recordRequests(func() { w.apply(ctx, withStrategy(w.configMap("a", "key", "3"), apply.StrategyOnDelete)) })).To(matchWrites(0))
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "2")) })).To(matchWrites(0))
	})

	It("plans no change", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyOnDelete
		w.apply(ctx, w.configMap("a", "key", "1"))
		plan, err := w.getPlan(ctx, w.configMap("a", "key", "2"), w.configMap("b"))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Unchanged).To(Equal(1))
		Expect(plan.Changes).To(ConsistOf(SatisfyAll(HaveField("Action", apply.ActionCreate), HaveField("Ref.Name", "b"))))
	})
})
