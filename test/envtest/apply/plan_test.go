// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

// getPlan calls the engine's method Plan. It fails the spec if this call sends writes.
func (w *env) getPlan(ctx context.Context, desired ...apply.Desired) (apply.Plan, error) {
	GinkgoHelper()
	w.wire.SetInjector(func(req *http.Request) (*http.Response, error) {
		defer GinkgoRecover()
		if r, ok := faultnet.RequestOf(req); ok && r.Verb != "get" {
			Expect(req.URL.Query()).To(HaveKeyWithValue("dryRun", []string{"All"}))
		}
		return nil, nil
	})
	defer w.wire.SetInjector(nil)
	out, err := w.newEngine().Plan(ctx, w.owner, desired, w.stored)
	_, _ = io.WriteString(GinkgoWriter, out.String())
	return out, err
}

var _ = Describe("Plan of an apply", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite} {
		It("shows objects to create, change and delete, and changes nothing; strategy "+string(strategy), func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			w.apply(ctx, w.configMap("same", "k", "v"), w.configMap("gone", "k", "v"), withPolicy(w.configMap("kept"), apply.PolicyKeep), w.configMap("changed", "other", "v"))
			desired := []apply.Desired{w.configMap("same", "k", "v"), w.configMap("new"), w.configMap("changed", "k", "v", "other", "v")}
			plan, err := w.getPlan(ctx, desired...)
			Expect(err).NotTo(HaveOccurred())
			ref := func(name string) apply.Ref { return apply.ToRef(w.configMap(name).Object) }
			Expect(plan).To(Equal(apply.Plan{Unchanged: 1, Changes: []apply.Change{
				{Action: apply.ActionChange, Ref: ref("changed"), Fields: []apply.FieldChange{{Path: ".data.k", New: `"v"`}}},
				{Action: apply.ActionDelete, Ref: ref("gone")},
				{Action: apply.ActionCreate, Ref: ref("new")},
			}}))
			w.apply(ctx, desired...)
			after, err := w.getPlan(ctx, desired...)
			Expect(err).NotTo(HaveOccurred())
			Expect(after).To(Equal(apply.Plan{Unchanged: 3}))
		})
	}

	It("does not delete an object that is gone, or belongs to another owner", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b")...)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		Expect(direct.Delete(ctx, w.get(ctx, "b"))).To(Succeed())
		w.createForeign(ctx, "b")
		plan, err := w.getPlan(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Changes).To(BeEmpty())
	})

	It("hides the values of Secrets", func(ctx SpecContext) {
		w := newEnv(ctx)
		secret := func(value string) apply.Desired {
			return w.manifest("v1", "Secret", "s", map[string]any{"stringData": map[string]any{"k": value}})
		}
		w.apply(ctx, secret("CANARY-1"))
		plan, err := w.getPlan(ctx, secret("CANARY-2"), w.configMap("a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.String()).To(Equal("create ConfigMap " + w.namespace + "/a\nchange Secret " + w.namespace + "/s\n  .data.k: *** -> ***\n2 to do, 0 unchanged\n"))
	})

	It("refuses an object of another item with its name, and shows no change that the policy excludes", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.newOtherItem().apply(ctx, w.configMap("a"))
		w.createForeign(ctx, "b", "k", "theirs")
		plan, err := w.getPlan(ctx, w.configMap("a"), withPolicy(w.configMap("b", "k", "ours"), apply.PolicyFallback), withPolicy(w.configMap("c"), apply.PolicyIgnore))
		Expect(err).To(MatchError(ContainSubstring("items/other")))
		Expect(plan).To(Equal(apply.Plan{Unchanged: 1}))
	})

	It("plans objects whose kinds and namespaces do not exist yet", func(ctx SpecContext) {
		w := newEnv(ctx)
		plan, err := w.getPlan(ctx, w.newObjectOfEachStage()...)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Changes).To(SatisfyAll(HaveLen(4), HaveEach(HaveField("Action", apply.ActionCreate))))
	})
})
