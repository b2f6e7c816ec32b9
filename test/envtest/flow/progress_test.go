// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var _ = flow("Progress of a run", func(e *cluster) {
	It("a run shows the reason of a WaitFor, and succeeds when the deployer returns nil [C9, C10]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.Wait("the weather", 300*time.Millisecond))
		w.run(slowBackoff)
		w.deploy("a")
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		Expect(di.Status.LastError).To(BeNil())
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)
		Expect(cond.Message).To(ContainSubstring("the weather"))
		di = w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)).To(BeNil())
		Expect(w.calls("a")).To(HaveLen(2))
	})

	It("the writes of a waiting run do not trigger the item", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Always(contract.ActionReconcile, landscapertest.Wait("a trigger", time.Hour))
		w.run()
		w.deploy("a")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.stays("a")
		Expect(w.calls("a")).To(HaveLen(1))
		w.fake.Always(contract.ActionReconcile, nil)
		w.fake.Runtime().Trigger(w.key("a"))
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("a deployer that returns the phase Progressing is called again [C9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.Phase(phases.Progressing), landscapertest.Phase(phases.Progressing))
		w.run(slowBackoff)
		w.succeeds("a")
		Expect(w.calls("a")).To(HaveLen(3))
		Expect(w.shown("a")).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.Succeeded}))
	})

	It("a checkpoint is stored during a call, and kept after a later error", func(ctx SpecContext) {
		w := e.begin(ctx)
		var during *lsv1alpha1.DeployItem
		w.fake.On(contract.ActionReconcile, landscapertest.InTurn(
			provider("one"),
			func(ctx context.Context, _ landscapertest.Input) error { return deployerlib.Checkpoint(ctx) },
			func(context.Context, landscapertest.Input) error {
				during = w.get("a")
				return nil
			},
			provider("two"), landscapertest.Fail(errTrouble)))
		w.run(slowBackoff)
		w.deploy("a")
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(providerOf(during)).To(ContainSubstring("one"))
		Expect(during.Status.Phase).To(Equal(phases.Init))
		Expect(providerOf(di)).To(ContainSubstring("two"), "changes in memory are also stored after an error")
	})

	It("a checkpoint fails if Landscaper has ended the job", func(ctx SpecContext) {
		w := e.begin(ctx)
		var result error
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			<-ctx.Done()
			if err := provider("late")(ctx, in); err != nil {
				return err
			}
			result = deployerlib.Checkpoint(ctx)
			return result
		})
		w.run()
		w.deploy("a")
		w.awaitCall("a", contract.ActionReconcile, 1)
		w.interrupt("a")
		w.awaitReturn("a", contract.ActionReconcile, 1)
		Expect(result).To(MatchError(deployerlib.ErrSuperseded))
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return providerOf(di) != "" })
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
	})

	It("the outcome of a call is stored although another client writes the item during the call", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.InTurn(provider("done"), func(context.Context, landscapertest.Input) error {
			w.update("a", withAnnotation("example.com/note", "in between"))
			w.patchStatus("a", map[string]any{"conditions": []any{}})
			return nil
		}))
		w.run()
		di := w.succeeds("a")
		Expect(providerOf(di)).To(ContainSubstring("done"))
		Expect(di.Annotations).To(HaveKey("example.com/note"))
		Expect(w.calls("a")).To(HaveLen(1))
	})

	It("a spec that changes during a call is run afterwards [L27]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			w.update("a", withConfig("new"))
			return nil
		})
		w.run()
		w.deploy("a")
		if e.jobs() {
			di := w.finished("a")
			Expect(di.Status.ObservedGeneration).To(BeNumerically("<", di.Generation), "the generation that was deployed")
			w.job("a")
		}
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return tracked(di) && di.Status.Phase == phases.Succeeded })
	})

	It("invalid changes of a deployer are reverted, and a changed spec is refused", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			in.Item.Status.JobID, in.Item.Status.JobIDFinished, in.Item.Status.ObservedGeneration = "x", "y", 99
			in.Item.Labels = map[string]string{"changed": "true"}
			in.Item.Spec.Context = "changed"
			return nil
		})
		w.run()
		w.deploy("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("spec.context"))
		Expect(di.Labels).NotTo(HaveKey("changed"))
		Expect(di.Spec.Context).To(BeEmpty())
		Expect(tracked(di)).To(BeTrue())
	})

	It("an item with an invalid provider status is processed and deleted [C13]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, nil, landscapertest.Wait("the poison", time.Hour))
		w.run()
		w.succeeds("a")
		w.job("a")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.patchStatus("a", map[string]any{"providerStatus": map[string]any{"poison": true}})
		w.fake.Runtime().Trigger(w.key("a"))
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		w.patchStatus("a", map[string]any{"providerStatus": map[string]any{"poison": true}})
		w.delete("a")
		w.gone("a")
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile, contract.ActionDelete}))
	})

	It("an item in an unknown phase is started [L29]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.create("a")
		w.patchStatus("a", map[string]any{"phase": "Strange", "observedGeneration": 0})
		w.forget("a")
		w.run()
		w.job("a")
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("a panic of the deployer becomes an error of the item [Lx10]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.Panic("no pod"))
		w.run()
		w.succeeds("a")
		Expect(w.calls("a")).To(HaveLen(2))
		Expect(w.versions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil
		})))
	})
})
