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

var _ = registerSpecs("Progress of a run", func(e *cluster) {
	It("a run shows the reason of a WaitFor, and succeeds when the deployer returns nil [C9, C10]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the weather", 300*time.Millisecond))
		w.run(setSlowBackoff)
		w.createAndStart("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		Expect(di.Status.LastError).To(BeNil())
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)
		Expect(cond.Message).To(ContainSubstring("the weather"))
		di = w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)).To(BeNil())
		Expect(w.listCalls("a")).To(HaveLen(2))
	})

	It("the writes of a waiting run do not trigger the item", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnWaitFor("a trigger", time.Hour))
		w.run()
		w.createAndStart("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(1))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, nil)
		w.fake.Runtime().Trigger(w.key("a"))
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("a deployer that returns the phase Progressing is called again [C9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing), landscapertest.SetPhase(phases.Progressing))
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		Expect(w.listCalls("a")).To(HaveLen(3))
		Expect(w.listPhases("a")).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.Succeeded}))
	})

	It("a checkpoint is stored during a call, and kept after a later error", func(ctx SpecContext) {
		w := e.begin(ctx)
		var during *lsv1alpha1.DeployItem
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(
			storeProviderStatus("one"),
			func(ctx context.Context, _ landscapertest.Input) error { return deployerlib.Checkpoint(ctx) },
			func(context.Context, landscapertest.Input) error {
				during = w.get("a")
				return nil
			},
			storeProviderStatus("two"), landscapertest.ReturnError(errTrouble)))
		w.run(setSlowBackoff)
		w.createAndStart("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(getProviderStatus(during)).To(ContainSubstring("one"))
		Expect(during.Status.Phase).To(Equal(phases.Init))
		Expect(getProviderStatus(di)).To(ContainSubstring("two"), "changes in memory are also stored after an error")
	})

	It("a checkpoint fails if Landscaper has ended the job", func(ctx SpecContext) {
		w := e.begin(ctx)
		var result error
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			<-ctx.Done()
			if err := storeProviderStatus("late")(ctx, in); err != nil {
				return err
			}
			result = deployerlib.Checkpoint(ctx)
			return result
		})
		w.run()
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.cancelJob("a")
		w.waitForReturn("a", contract.ActionReconcile, 1)
		Expect(result).To(MatchError(deployerlib.ErrSuperseded))
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return getProviderStatus(di) != "" })
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
	})

	It("the outcome of a call is stored although another client writes the item during the call", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(storeProviderStatus("done"), func(context.Context, landscapertest.Input) error {
			w.update("a", withAnnotation("example.com/note", "in between"))
			w.patchStatus("a", map[string]any{"conditions": []any{}})
			return nil
		}))
		w.run()
		di := w.runSuccessfully("a")
		Expect(getProviderStatus(di)).To(ContainSubstring("done"))
		Expect(di.Annotations).To(HaveKey("example.com/note"))
		Expect(w.listCalls("a")).To(HaveLen(1))
	})

	It("a spec that changes during a call is run afterwards [L27]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			w.update("a", withConfig("new"))
			return nil
		})
		w.run()
		w.createAndStart("a")
		if e.hasJobs() {
			di := w.finished("a")
			Expect(di.Status.ObservedGeneration).To(BeNumerically("<", di.Generation), "the generation that was deployed")
			w.startJob("a")
		}
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return isGenerationObserved(di) && di.Status.Phase == phases.Succeeded
		})
	})

	It("invalid changes of a deployer are reverted, and a changed spec is refused", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			in.Item.Status.JobID, in.Item.Status.JobIDFinished, in.Item.Status.ObservedGeneration = "x", "y", 99
			in.Item.Labels = map[string]string{"changed": "true"}
			in.Item.Spec.Context = "changed"
			return nil
		})
		w.run()
		w.createAndStart("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("spec.context"))
		Expect(di.Labels).NotTo(HaveKey("changed"))
		Expect(di.Spec.Context).To(BeEmpty())
		Expect(isGenerationObserved(di)).To(BeTrue())
	})

	It("an item with an invalid provider status is processed and deleted [C13]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, nil, landscapertest.ReturnWaitFor("the poison", time.Hour))
		w.run()
		w.runSuccessfully("a")
		w.startJob("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.patchStatus("a", map[string]any{"providerStatus": map[string]any{"poison": true}})
		w.fake.Runtime().Trigger(w.key("a"))
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		w.patchStatus("a", map[string]any{"providerStatus": map[string]any{"poison": true}})
		w.delete("a")
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile, contract.ActionDelete}))
	})

	It("an item in an unknown phase is started [L29]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.create("a")
		w.patchStatus("a", map[string]any{"phase": "Strange", "observedGeneration": 0})
		w.forget("a")
		w.run()
		w.startJob("a")
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("a panic of the deployer becomes an error of the item [Lx10]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.Panic("no pod"))
		w.run()
		w.runSuccessfully("a")
		Expect(w.listCalls("a")).To(HaveLen(2))
		Expect(w.listVersions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil
		})))
	})
})
