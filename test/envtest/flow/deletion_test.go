// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var _ = registerSpecs("Forced reconciles and deletion", func(e *cluster) {
	It("the operation force-reconcile runs a finished item once, and is removed afterwards [L32, Lx7, Lx8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		var during lsv1alpha1.DeployItem
		w.fake.QueueAnswers(contract.ActionForceReconcile, func(context.Context, landscapertest.Input) error {
			during = *w.get("a")
			return nil
		})
		w.run()
		w.runSuccessfully("a")
		w.forget("a")
		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Annotations[lsv1alpha1.OperationAnnotation] == "" && contract.IsFinal(di.Status.Phase)
		})
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(during.Annotations).To(HaveKey(lsv1alpha1.OperationAnnotation), "the annotation must remain until the run has ended, in case of a crash")
		Expect(during.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		if e.hasJobs() {
			w.expectSameJob("a")
		}
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionForceReconcile}))
	})

	It("a forced reconcile is repeated until it succeeds, and Reconcile is called after that [Lx8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionForceReconcile, landscapertest.ReturnError(errTrouble), landscapertest.ReturnWaitFor("more", 50*time.Millisecond))
		w.run()
		w.runSuccessfully("a")
		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionForceReconcile, contract.ActionReconcile)
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Annotations[lsv1alpha1.OperationAnnotation] == "" && di.Status.Phase == phases.Succeeded && di.Status.LastError == nil
		})
	})

	It("the operation force-reconcile survives a restart of the deployer [Lx8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionForceReconcile, landscapertest.BlockUntilCancelled())
		first := w.run(func(args *deployerlib.DeployerArgs) { args.GracePeriod = 200 * time.Millisecond })
		w.runSuccessfully("a")
		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		w.waitForCall("a", contract.ActionForceReconcile, 1)
		first.Stop()
		Expect(w.get("a").Annotations).To(HaveKey(lsv1alpha1.OperationAnnotation))
		w.run()
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionForceReconcile)
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
	})

	if e.hasJobs() {
		It("the operation force-reconcile does not run an item of an Execution whose new spec has no job yet [Lx7]", func(ctx SpecContext) {
			w := e.begin(ctx)
			w.run()
			w.runSuccessfully("a")
			w.update("a", withConfig("new"), withOperation(lsv1alpha1.ForceReconcileOperation))
			Consistently(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(1))
			w.startJob("a")
			w.waitForCalls("a", contract.ActionReconcile, contract.ActionForceReconcile)
		})
	}

	It("a finished item is deleted [L33, C13, Lx7]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		w.runSuccessfully("a")
		w.markDeleted("a")
		if e.hasJobs() {
			// Landscaper deletes items in the order of their dependencies. The job for this item is created later.
			w.expectUnchanged("a")
			Expect(w.listCalls("a")).To(HaveLen(1))
			w.startJob("a")
		}
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	It("a deletion starts after the running call has returned [L30, L33]", func(ctx SpecContext) {
		w := e.begin(ctx)
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntil(release))
		w.run()
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.markDeleted("a")
		Consistently(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(1))
		close(release)
		if e.hasJobs() {
			w.finished("a")
			w.startJob("a")
		}
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	DescribeTable("an operation with a higher precedence runs before the deletion [L30, L35]",
		func(ctx SpecContext, op lsv1alpha1.Operation, action contract.Action) {
			w := e.begin(ctx).registerAllHooks()
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the end", time.Hour))
			w.run()
			w.createAndStart("a")
			w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
			// This hook aborts each reconcile until both the operation and the deletion timestamp are set.
			w.setHook(extension.AfterResponsibilityCheckHook, landscapertest.ReturnResult(newAbortResult(0), nil))
			w.setOperation("a", op)
			w.markDeleted("a")
			Eventually(w.hooks.Calls).Should(ContainElement(Satisfy(func(call landscapertest.HookCall) bool {
				return call.Item != nil && call.Item.DeletionTimestamp != nil && call.Item.Annotations[lsv1alpha1.OperationAnnotation] == string(op)
			})))
			w.setHook(extension.AfterResponsibilityCheckHook, nil)
			w.fake.Runtime().Trigger(w.key("a"))
			w.waitForReturn("a", action, 1)
			if e.hasJobs() && op == contract.AbortOperation {
				w.finished("a")
				w.startJob("a")
			}
			w.waitUntilDeleted("a")
			Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, action, contract.ActionDelete}))
		},
		Entry("the operation is abort", contract.AbortOperation, contract.ActionAbort),
		Entry("the operation is force-reconcile", lsv1alpha1.ForceReconcileOperation, contract.ActionForceReconcile),
	)

	It("a deletion that fails permanently ends, and another request repeats it [C10, C13]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionDelete, landscapertest.ReturnError(deployerlib.NewConfigError("spec.config", "is broken")))
		w.run()
		w.runSuccessfully("a")
		w.delete("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(contract.FailedPhase(e.revision, true)))
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(2))
		w.startJob("a")
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(HaveLen(3))
	})

	It("the annotation delete-without-uninstall removes the finalizer without a call [C12]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.createTarget("dev", nil)
		w.run()
		w.runSuccessfully("a", withTarget("dev"))
		w.update("a", withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
		Expect(w.client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: w.meta("dev")})).To(Succeed())
		w.delete("a")
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	It("an item that only foreign finalizers keep is not processed any more [C13]", func(ctx SpecContext) {
		const foreign = "example.com/foreign"
		w := e.begin(ctx)
		w.run()
		w.runSuccessfully("a", func(di *lsv1alpha1.DeployItem) { controllerutil.AddFinalizer(di, foreign) })
		w.delete("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return len(di.Finalizers) == 1 && di.Finalizers[0] == foreign })
		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
		w.update("a", func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil })
		w.waitUntilDeleted("a")
	})

	It("an item that is created again with the same name starts from the beginning [L23]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		for range 3 {
			w.runSuccessfully("a")
			w.delete("a")
			w.waitUntilDeleted("a")
		}
		Expect(w.listCalls("a")).To(Equal([]contract.Action{
			contract.ActionReconcile, contract.ActionDelete, contract.ActionReconcile, contract.ActionDelete, contract.ActionReconcile, contract.ActionDelete,
		}))
	})
})
