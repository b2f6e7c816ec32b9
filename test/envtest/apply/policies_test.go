// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
)

func withPolicy(d apply.Desired, policy apply.Policy) apply.Desired {
	d.Policy = policy
	return d
}

var _ = Describe("Policies", func() {
	type outcome struct{ created, adopted, updated, pruned, deleted bool }
	for policy, want := range map[apply.Policy]outcome{
		apply.PolicyManage:    {created: true, adopted: true, updated: true, pruned: true, deleted: true},
		apply.PolicyFallback:  {created: true, adopted: false, updated: true, pruned: true, deleted: true},
		apply.PolicyKeep:      {created: true, adopted: true, updated: true, pruned: false, deleted: false},
		apply.PolicyIgnore:    {},
		apply.PolicyImmutable: {created: true, adopted: false, updated: false, pruned: true, deleted: true},
	} {
		for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyMerge} {
			It("the policy "+string(policy)+" acts like the policy of Landscaper; strategy "+string(strategy)+" [D8] [H-18]", func(ctx SpecContext) {
				w := newEnv(ctx)
				w.options.Strategy = strategy
				w.createForeign(ctx, "theirs", "key", "theirs")
				theirs := w.get(ctx, "theirs")
				first := []apply.Desired{withPolicy(w.configMap("ours", "key", "1"), policy), withPolicy(w.configMap("theirs", "more", "ours"), policy)}
				w.apply(ctx, first...)
				Expect(w.get(ctx, "ours") != nil).To(Equal(want.created))
				Expect(w.get(ctx, "theirs").ResourceVersion != theirs.ResourceVersion).To(Equal(want.adopted))

				second := []apply.Desired{withPolicy(w.configMap("ours", "key", "1", "new", "2"), policy), first[1]}
				w.apply(ctx, second...)
				if want.created {
					Expect(w.get(ctx, "ours").Data["new"] == "2").To(Equal(want.updated))
				}
				w.apply(ctx, second[1])
				Expect(w.get(ctx, "ours") == nil).To(Equal(want.pruned || !want.created))
				Expect(w.listNames()).NotTo(ContainElement("ours"), "it was deleted, or is forgotten")

				w.apply(ctx, second...)
				w.delete(ctx)
				Expect(w.get(ctx, "ours") == nil).To(Equal(want.deleted || !want.created))
				Expect(w.get(ctx, "theirs") == nil).To(BeFalse(), "an object that existed before the item is kept")
				Expect(w.stored.Entries).To(BeEmpty())
			})
		}
	}

	It("the policy ignore removes an object from the inventory [D8]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		w.apply(ctx, withPolicy(w.configMap("a", "key", "other"), apply.PolicyIgnore))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "value"))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("the policy immutable does not track an object that existed before, and restores a deleted object [H-18]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.createForeign(ctx, "theirs")
		desired := []apply.Desired{withPolicy(w.configMap("theirs"), apply.PolicyImmutable), withPolicy(w.configMap("ours"), apply.PolicyImmutable)}
		w.apply(ctx, desired...)
		Expect(w.listReasons()).To(ConsistOf(apply.ReasonLeftAlone))
		Expect(direct.Delete(ctx, w.get(ctx, "ours"))).To(Succeed())
		w.apply(ctx, desired...)
		Expect(w.get(ctx, "ours")).NotTo(BeNil())
		w.delete(ctx)
		Expect(w.get(ctx, "theirs")).NotTo(BeNil())
		Expect(w.get(ctx, "ours")).To(BeNil())
	})

	It("rejects an unknown policy and an unknown strategy [H-29]", func(ctx SpecContext) {
		w := newEnv(ctx)
		_, err := w.try(ctx, withPolicy(w.configMap("a"), "mange"))
		Expect(err).To(MatchError(ContainSubstring(`policy: "mange" is not one of`)))
		desired := w.configMap("a")
		desired.Strategy = "upate"
		_, err = w.try(ctx, desired)
		Expect(err).To(MatchError(ContainSubstring(`strategy: "upate" is not one of`)))
	})
})
