// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// pause sets the annotation that pauses an item. The function `removePause` removes this annotation.
var pause = withAnnotation(contract.PausedAnnotation, "true")

func removePause(di *lsv1alpha1.DeployItem) { delete(di.Annotations, contract.PausedAnnotation) }

// hasPausedCondition reports whether the condition Paused of an item is True.
func hasPausedCondition(di *lsv1alpha1.DeployItem) bool {
	c := contract.GetCondition(di.Status.Conditions, contract.ConditionPaused)
	return c != nil && c.Status == lsv1alpha1.ConditionTrue
}

// expectPaused waits until the condition Paused of an item is True. It requires that the rest of the item is the same
// as in `before`, and that the item then stays unchanged.
func (w *env) expectPaused(name string, before *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	di := w.waitUntil(name, hasPausedCondition)
	w.expectUnchanged(name)
	before, di = before.DeepCopy(), di.DeepCopy()
	Expect(di.Generation).To(Equal(before.Generation))
	di.Status.Conditions, before.Status.Conditions = nil, nil
	Expect(di.Status).To(Equal(before.Status))
	Expect(di.Annotations).To(Equal(before.Annotations))
	Expect(di.Finalizers).To(Equal(before.Finalizers))
	shown := 0
	for _, version := range w.listVersions(name) {
		if hasPausedCondition(version) {
			shown++
		}
	}
	Expect(shown).To(Equal(1), "a pause costs one write")
}

// waitForReconcile calls the function `do`, which triggers a finished item, and waits until the item has been
// reconciled.
func (w *env) waitForReconcile(do func()) {
	GinkgoHelper()
	before := w.sumHookCalls(extension.StartHook)
	do()
	Eventually(func() int { return w.sumHookCalls(extension.StartHook) }).WithContext(w.ctx).Should(BeNumerically(">", before))
}

var _ = registerSpecs("Paused items", func(e *cluster) {
	It("a new job starts only after the pause, and then at once [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run(setSlowBackoff)
		w.create("a", pause)
		w.startJob("a")
		w.expectPaused("a", w.get("a"))
		Expect(w.listCalls("a")).To(BeEmpty())
		Expect(w.findReconcile(extension.AfterResponsibilityCheckHook)).To(BeEmpty(), "no hook is called")
		w.update("a", removePause)
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(hasPausedCondition(di)).To(BeFalse())
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	It("an operation is kept until the pause ends [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		w.update("a", pause)
		w.forget("a")
		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		w.expectPaused("a", w.get("a"))
		w.update("a", removePause)
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionForceReconcile)
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Annotations[lsv1alpha1.OperationAnnotation] == "" && !hasPausedCondition(di)
		})
	})

	It("a hook cannot force a run, and the item is written only once [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		w.expectUnchanged("a")
		w.waitForReconcile(func() { w.update("a", pause) })
		w.setHook(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.CountCalls(w.key("a"), contract.ActionReconcile) > 1 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		w.waitForReconcile(func() { w.fake.Runtime().Trigger(w.key("a")) })
		w.expectUnchanged("a")
		Expect(hasPausedCondition(w.get("a"))).To(BeFalse())
		Expect(w.listCalls("a")).To(HaveLen(1))
		w.update("a", removePause)
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
	})

	It("a deletion starts only after the pause [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		w.update("a", pause)
		w.forget("a")
		w.delete("a")
		w.expectPaused("a", w.get("a"))
		Expect(w.listCalls("a")).To(HaveLen(1))
		w.update("a", removePause)
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	It("a run in progress continues until its end, even if it has to wait, and later requests start after the pause [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile,
			landscapertest.RunInOrder(landscapertest.BlockUntil(release), landscapertest.ReturnWaitFor("a door", 50*time.Millisecond)),
			landscapertest.SetPhase(phases.Progressing), landscapertest.ReturnError(errTrouble))
		w.run()
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.update("a", pause, withConfig("new"))
		close(release)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.Phase == phases.Succeeded && di.Status.JobID == di.Status.JobIDFinished
		})
		Expect(di.Status.ObservedGeneration).To(BeNumerically("<", di.Generation))
		Expect(w.listCalls("a")).To(HaveLen(4))
		if e.hasJobs() {
			w.startJob("a")
		}
		w.waitUntil("a", hasPausedCondition)
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(4))
		w.update("a", removePause)
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return isGenerationObserved(di) && di.Status.Phase == phases.Succeeded
		})
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return !hasPausedCondition(di) })
		Expect(w.listCalls("a")).To(HaveLen(5))
	})

	It("the user can abort the run, and Landscaper can end the job [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.run()
		for name, cut := range map[string]func(string){
			"aborted":     func(name string) { w.setOperation(name, contract.AbortOperation) },
			"interrupted": w.cancelJob,
		} {
			w.createAndStart(name)
			w.waitForCall(name, contract.ActionReconcile, 1)
			w.update(name, pause)
			cut(name)
			Expect(w.finished(name).Status.Phase).To(Equal(phases.Failed))
			w.waitForReturn(name, contract.ActionReconcile, 1)
			w.waitForCalls(name, contract.ActionReconcile, contract.ActionAbort)
			// Wait for the second write at the end of the run, which removes the annotation.
			w.waitUntil(name, func(di *lsv1alpha1.DeployItem) bool {
				_, asked := di.Annotations[lsv1alpha1.OperationAnnotation]
				return !asked
			})
			w.expectUnchanged(name)
			Expect(hasPausedCondition(w.get(name))).To(BeFalse(), "the condition Paused is not True, because no request is held back")
		}
	})
})
