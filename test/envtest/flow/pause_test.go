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

// pause sets the annotation that pauses an item. The function `resume` removes this annotation.
var pause = withAnnotation(contract.PausedAnnotation, "true")

func resume(di *lsv1alpha1.DeployItem) { delete(di.Annotations, contract.PausedAnnotation) }

// showsPause reports whether the condition Paused of an item is True.
func showsPause(di *lsv1alpha1.DeployItem) bool {
	c := contract.GetCondition(di.Status.Conditions, contract.ConditionPaused)
	return c != nil && c.Status == lsv1alpha1.ConditionTrue
}

// holds waits until the condition Paused of an item is True. It requires that the rest of the item is the same as in
// `before`, and that the item then stays unchanged.
func (w *env) holds(name string, before *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	di := w.until(name, showsPause)
	w.stays(name)
	before, di = before.DeepCopy(), di.DeepCopy()
	Expect(di.Generation).To(Equal(before.Generation))
	di.Status.Conditions, before.Status.Conditions = nil, nil
	Expect(di.Status).To(Equal(before.Status))
	Expect(di.Annotations).To(Equal(before.Annotations))
	Expect(di.Finalizers).To(Equal(before.Finalizers))
	shown := 0
	for _, version := range w.versions(name) {
		if showsPause(version) {
			shown++
		}
	}
	Expect(shown).To(Equal(1), "a pause costs one write")
}

// passesAfter calls the function `do`, which triggers a finished item, and waits until the item has been reconciled.
func (w *env) passesAfter(do func()) {
	GinkgoHelper()
	before := w.count(extension.StartHook)
	do()
	Eventually(func() int { return w.count(extension.StartHook) }).WithContext(w.ctx).Should(BeNumerically(">", before))
}

var _ = flow("Paused items", func(e *cluster) {
	It("a new job starts only after the pause, and then at once [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run(slowBackoff)
		w.create("a", pause)
		w.job("a")
		w.holds("a", w.get("a"))
		Expect(w.calls("a")).To(BeEmpty())
		Expect(w.passOf(extension.AfterResponsibilityCheckHook)).To(BeEmpty(), "no hook is called")
		w.update("a", resume)
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(showsPause(di)).To(BeFalse())
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	It("an operation is kept until the pause ends [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run(slowBackoff)
		w.succeeds("a")
		w.update("a", pause)
		w.forget("a")
		w.operate("a", lsv1alpha1.ForceReconcileOperation)
		w.holds("a", w.get("a"))
		w.update("a", resume)
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionForceReconcile)
		w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Annotations[lsv1alpha1.OperationAnnotation] == "" && !showsPause(di)
		})
	})

	It("a hook cannot force a run, and the item is written only once [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run(slowBackoff)
		w.succeeds("a")
		w.stays("a")
		w.passesAfter(func() { w.update("a", pause) })
		w.on(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.Count(w.key("a"), contract.ActionReconcile) > 1 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		w.passesAfter(func() { w.fake.Runtime().Trigger(w.key("a")) })
		w.stays("a")
		Expect(showsPause(w.get("a"))).To(BeFalse())
		Expect(w.calls("a")).To(HaveLen(1))
		w.update("a", resume)
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionReconcile)
	})

	It("a deletion starts only after the pause [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run(slowBackoff)
		w.succeeds("a")
		w.update("a", pause)
		w.forget("a")
		w.delete("a")
		w.holds("a", w.get("a"))
		Expect(w.calls("a")).To(HaveLen(1))
		w.update("a", resume)
		w.gone("a")
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	It("the current run ends with its waits, and later requests start after the pause [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		release := make(chan struct{})
		w.fake.On(contract.ActionReconcile,
			landscapertest.InTurn(landscapertest.Block(release), landscapertest.Wait("a door", 50*time.Millisecond)),
			landscapertest.Phase(phases.Progressing), landscapertest.Fail(errTrouble))
		w.run()
		w.deploy("a")
		w.awaitCall("a", contract.ActionReconcile, 1)
		w.update("a", pause, withConfig("new"))
		close(release)
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.Phase == phases.Succeeded && di.Status.JobID == di.Status.JobIDFinished
		})
		Expect(di.Status.ObservedGeneration).To(BeNumerically("<", di.Generation))
		Expect(w.calls("a")).To(HaveLen(4))
		if e.jobs() {
			w.job("a")
		}
		w.until("a", showsPause)
		w.stays("a")
		Expect(w.calls("a")).To(HaveLen(4))
		w.update("a", resume)
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return tracked(di) && di.Status.Phase == phases.Succeeded })
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return !showsPause(di) })
		Expect(w.calls("a")).To(HaveLen(5))
	})

	It("the user can abort the run, and Landscaper can end the job [Yx2]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Always(contract.ActionReconcile, landscapertest.UntilCancelled())
		w.run()
		for name, cut := range map[string]func(string){
			"aborted":     func(name string) { w.operate(name, contract.AbortOperation) },
			"interrupted": w.interrupt,
		} {
			w.deploy(name)
			w.awaitCall(name, contract.ActionReconcile, 1)
			w.update(name, pause)
			cut(name)
			Expect(w.finished(name).Status.Phase).To(Equal(phases.Failed))
			w.awaitReturn(name, contract.ActionReconcile, 1)
			w.eventuallyCalls(name, contract.ActionReconcile, contract.ActionAbort)
			// Wait for the second write at the end of the run, which removes the annotation.
			w.until(name, func(di *lsv1alpha1.DeployItem) bool {
				_, asked := di.Annotations[lsv1alpha1.OperationAnnotation]
				return !asked
			})
			w.stays(name)
			Expect(showsPause(w.get(name))).To(BeFalse(), "the condition Paused is not True, because no request is held back")
		}
	})
})
