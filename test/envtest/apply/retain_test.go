// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Policy retain", func() {
	It("leaves an object and its labels unchanged while it is desired, and deletes it afterwards", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a", "key", "1")
		desired.PatchAfterDeployment = map[string]any{"data": map[string]any{"after": "yes"}}
		w.apply(ctx, desired, w.configMap("b"))
		same := withPolicy(desired, apply.PolicyRetain)
		Expect(w.recordRequests(func() {
			inv, _, err := w.newEngine().AfterDeployment(ctx, w.owner, []apply.Desired{same}, w.stored)
			Expect(err).NotTo(HaveOccurred())
			w.store(inv)
		})).To(matchWrites(0), "the patch before the deletion is not sent yet")
		w.patchConfigMap(ctx, "a", `{"metadata":{"labels":null},"data":{"key":"by hand"}}`)
		before := w.get(ctx, "a")
		frozen := withPolicy(w.configMap("a", "key", "2"), apply.PolicyRetain)
		frozen.PatchAfterDeployment = desired.PatchAfterDeployment
		for range 2 {
			spent := w.recordRequests(func() {
				report := w.apply(ctx, frozen, w.configMap("b"))
				Expect(report.Owned).To(ConsistOf(HaveField("Object.Name", "b")))
				inv, _, err := w.newEngine().AfterDeployment(ctx, w.owner, []apply.Desired{frozen}, w.stored)
				Expect(err).NotTo(HaveOccurred())
				w.store(inv)
			})
			Expect(spent).To(matchWrites(0), spent.String())
		}
		Expect(w.get(ctx, "a")).To(Equal(before))
		Expect(w.listNames()).To(ConsistOf("a", "b"))
		Expect(w.newEngine().ListOwned(w.stored)).To(ConsistOf(HaveField("Object.Name", "b")), "a new process does not watch the object for drift either")
		plan, err := w.getPlan(ctx, frozen, w.configMap("b"))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Changes).To(BeEmpty())

		w.apply(ctx, w.configMap("b"))
		Expect(w.get(ctx, "a")).To(BeNil())
		Expect(w.listNames()).To(ConsistOf("b"))
	})

	It("changes no object that the inventory does not contain, and creates none", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx)
		w.createForeign(ctx, "theirs", "key", "theirs")
		before := w.get(ctx, "theirs")
		desired := []apply.Desired{withPolicy(w.configMap("theirs", "key", "1"), apply.PolicyRetain), withPolicy(w.configMap("new"), apply.PolicyRetain)}
		Expect(w.recordRequests(func() { w.apply(ctx, desired...) })).To(matchWrites(0))
		Expect(w.stored.Entries).To(BeEmpty())
		Expect(w.checkpoints).To(BeZero())
		w.apply(ctx)
		w.delete(ctx)
		Expect(w.get(ctx, "new")).To(BeNil())
		Expect(w.get(ctx, "theirs")).To(Equal(before))
	})

	It("corrects the object when the policy changes", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "key", "1"))
		w.apply(ctx, withPolicy(w.configMap("a", "key", "1"), apply.PolicyRetain))
		w.patchConfigMap(ctx, "a", `{"data":{"key":"by hand"}}`)
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "1")) })).To(matchWrites(1))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "1"))
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "1")) })).To(matchWrites(0))
		w.apply(ctx, withPolicy(w.configMap("a"), apply.PolicyRetain))
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil(), "the object is deleted with the item")
	})
})
