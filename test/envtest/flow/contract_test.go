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
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// isGenerationObserved reports whether the observed generation of an item is its current generation.
func isGenerationObserved(di *lsv1alpha1.DeployItem) bool {
	return di.Status.ObservedGeneration == di.Generation
}

var _ = registerSpecs("Jobs", func(e *cluster) {
	It("a job starts, runs and ends as Landscaper expects [L26, L28, L34, C3, C5, C7, C9, C10, C11] [H-31]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing))
		w.run()
		began := time.Now().Truncate(time.Second)
		done := w.runSuccessfully("a")
		Expect(w.listPhases("a")).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.Succeeded}))
		Expect(done.Generation).To(Equal(int64(1)), "the spec was not written")
		Expect(done.Status.ObservedGeneration).To(Equal(done.Generation))
		Expect(done.Status.LastReconcileTime.Time).To(BeTemporally(">=", began))
		Expect(done.Status.Deployer).To(Equal(lsv1alpha1.DeployerInformation{Name: "flow.deployerkit.dev", Identity: "flow", Version: "v1"}))
		Expect(done.Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
		for _, di := range w.listVersions("a") {
			if di.Status.Phase != "" {
				Expect(di.Status.LastReconcileTime).NotTo(BeNil(), "set together with the first phase")
				Expect(isGenerationObserved(di)).To(BeTrue())
			}
		}
		if !e.hasJobs() {
			Expect(done.Annotations).NotTo(HaveKey(lsv1alpha1.ReconcileTimestampAnnotation), "with this annotation, Landscaper would assume that no deployer has picked up the item")
			return
		}
		Expect(done.Status.JobIDFinished).To(Equal(done.Status.JobID))
		Expect(done.Status.TransitionTimes.InitTime).NotTo(BeNil())
		Expect(done.Status.TransitionTimes.FinishedTime).NotTo(BeNil())
	})

	It("each call receives the phase Init, and can read the stored phase [C9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing), landscapertest.ReturnWaitFor("more", 20*time.Millisecond))
		w.run()
		w.runSuccessfully("a")
		w.delete("a")
		w.waitUntilDeleted("a")
		var handed, stored []lsv1alpha1.DeployItemPhase
		for _, call := range w.fake.ListCalls(w.key("a")) {
			handed, stored = append(handed, call.InitialPhase), append(stored, call.StoredPhase)
		}
		last := phases.Init
		if e.hasJobs() {
			last = phases.InitDelete
		}
		Expect(handed).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Init, phases.Init, last}))
		Expect(stored[1:3]).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Progressing, phases.Progressing}))
	})

	It("a changed spec starts a run [L27, C7]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		first := w.runSuccessfully("a")
		w.update("a", withConfig("new"))
		if e.hasJobs() {
			Consistently(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(1), "Landscaper has not handed out the job yet")
			w.startJob("a")
		}
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return isGenerationObserved(di) && di.Status.Phase == phases.Succeeded
		})
		Expect(di.Generation).To(BeNumerically(">", first.Generation))
	})

	It("each job causes one run, which removes the errors of the previous one [C3, C8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Failed))
		w.run()
		w.createAndStart("a")
		Expect(w.finished("a").Status.LastError).NotTo(BeNil())
		for n := 2; n <= 4; n++ {
			w.startJob("a")
			di := w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(di.Status.LastError).To(BeNil())
			Expect(di.Status.LastErrors).To(BeEmpty())
			Expect(w.listCalls("a")).To(HaveLen(n))
		}
	})

	It("a job starts an item of an Execution, and a changed generation does not [C3, C8]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()
		di := w.newBareItem("a", asManaged)
		Expect(w.client.Create(ctx, di)).To(Succeed())
		Eventually(func() []extension.HookType { return w.findReconcile(extension.ShouldReconcileHook) }).Should(Equal(toShould))
		w.expectUnchanged("a")
		Expect(w.get("a").Status.Phase).To(BeEmpty())
		w.startJob("a")
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.listCalls("a")).To(HaveLen(1))
	})

	It("the finalizer is added before the first action, and removed only after Delete has succeeded [Lx6, C13]", func(ctx SpecContext) {
		w := e.begin(ctx)
		var atReconcile, atDelete []string
		w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			atReconcile = w.get("a").Finalizers
			return nil
		})
		w.fake.QueueAnswers(contract.ActionDelete, landscapertest.ReturnError(errTrouble), landscapertest.ReturnWaitFor("the children", 20*time.Millisecond),
			landscapertest.SetPhase(phases.Deleting), func(context.Context, landscapertest.Input) error {
				atDelete = w.get("a").Finalizers
				return nil
			})
		w.run()
		w.runSuccessfully("a")
		Expect(atReconcile).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		w.delete("a")
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete, contract.ActionDelete, contract.ActionDelete, contract.ActionDelete}))
		Expect(atDelete).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		Eventually(func() []lsv1alpha1.DeployItemPhase { return w.history.getPhases("a") }).Should(ContainElement(phases.Deleting))
	})

	It("a failed call is repeated while the status shows its error, and a failed job keeps the error [C10]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errTrouble), landscapertest.ReturnError(errTrouble))
		w.run()
		w.runSuccessfully("a")
		Expect(w.listCalls("a")).To(HaveLen(3))
		Expect(w.listVersions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil && di.Status.Phase == phases.Init
		})))

		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(deployerlib.NewConfigError("spec.config.field", "is %s", "wrong")))
		w.startJob("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(getErrorCodes(di)).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(di.Status.LastError.Message).To(ContainSubstring("spec.config.field"))
		w.expectUnchanged("a")
	})

	It("a run that another process left unfinished is continued [C14]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the restart", time.Hour))
		first := w.run()
		w.createAndStart("a")
		before := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		first.Stop()
		w.run()
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(di.Status.JobID).To(Equal(before.Status.JobID))
		Expect(di.Status.LastReconcileTime).To(Equal(before.Status.LastReconcileTime), "the same run")
		Expect(w.listCalls("a")).To(HaveLen(2))
	})

	It("a running call may end within the grace period when the process stops [C14]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		first := w.run(func(args *deployerlib.DeployerArgs) { args.GracePeriod = 200 * time.Millisecond })
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		first.Stop()
		call := w.waitForReturn("a", contract.ActionReconcile, 1)
		Expect(call.Cause).To(MatchError(deployerlib.ErrShutdown))
		Expect(w.get("a").Status.LastError).To(BeNil(), "the cause of a cancellation is not an error")
		w.run()
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("a finished item with the annotation to ignore it is not run [C8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		w.createAndStart("a", withAnnotation(lsv1alpha1.IgnoreAnnotation, "true"))
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded), "a run in progress ends before the annotation has an effect")
		w.update("a", withConfig("new"))
		w.startJob("a")
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(1))
		w.update("a", func(di *lsv1alpha1.DeployItem) { delete(di.Annotations, lsv1alpha1.IgnoreAnnotation) })
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
	})

	It("the operation test-reconcile starts a job under the job-ID revision only [C15]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		first := w.runSuccessfully("a")
		w.setOperation("a", lsv1alpha1.TestReconcileOperation)
		if !e.hasJobs() {
			w.expectUnchanged("a")
			Expect(w.listCalls("a")).To(HaveLen(1))
			return
		}
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.JobIDFinished != first.Status.JobID && di.Status.JobIDFinished == di.Status.JobID
		})
		Expect(di.Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
		Expect(di.Status.JobIDGenerationTime).NotTo(BeNil())
		w.expectUnchanged("a")
	})

	It("updateOnChangeOnly ends a job without a call if nothing changed, unless a hook forces the run [C15, L45]", func(ctx SpecContext) {
		if !e.hasJobs() {
			Expect(hasSpecField(ctx, e, "updateOnChangeOnly")).To(BeFalse(), "an old Landscaper does not know the field")
			return
		}
		w := e.begin(ctx).registerAllHooks()
		w.run()
		w.runSuccessfully("a", func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true })
		w.forget("a")
		id := w.startJob("a")
		di := w.finished("a")
		Expect(di.Status.JobIDFinished).To(Equal(id))
		Expect(w.listPhases("a")).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Succeeded}), "the phase never moved")
		Expect(w.listCalls("a")).To(HaveLen(1))

		w.setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.startJob("a")
		w.finished("a")
		w.setHook(extension.ShouldReconcileHook, nil)
		Expect(len(w.listCalls("a"))).To(BeNumerically(">", 1))

		before := len(w.listCalls("a"))
		w.update("a", withConfig("new"))
		w.startJob("a")
		w.finished("a")
		Expect(w.listCalls("a")).To(HaveLen(before + 1))
	})

	if e.hasJobs() {
		It("a run ends under the revision under which it started [C14]", func(ctx SpecContext) {
			w := e.begin(ctx)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the upgrade", 300*time.Millisecond))
			w.run()
			di := w.newBareItem("a", asManaged, withOperation(lsv1alpha1.ReconcileOperation))
			Expect(w.client.Create(ctx, di)).To(Succeed())
			w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
			w.update("a", w.asOfRevision)
			di = w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Succeeded })
			Expect(di.Status.JobIDFinished).To(BeEmpty())
			w.expectUnchanged("a")
			id := w.startJob("a")
			Expect(w.finished("a").Status.JobIDFinished).To(Equal(id))
		})
	}
})

// hasSpecField reports whether the installed definition of deploy items contains a certain field in the spec.
func hasSpecField(ctx context.Context, e *cluster, field string) bool {
	GinkgoHelper()
	for _, crd := range e.crds() {
		if crd.Spec.Names.Kind == "DeployItem" {
			_, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]
			return ok
		}
	}
	return false
}
