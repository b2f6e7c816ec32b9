// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// storeProviderStatus returns an answer that stores the given value in the provider status.
func storeProviderStatus(value string) landscapertest.Answer {
	return landscapertest.UpdateStatus(func(status *lsv1alpha1.DeployItemStatus) {
		status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"flow.deployerkit.dev/v1","kind":"Status","value":"` + value + `"}`)}
	})
}

// getProviderStatus returns the provider status of an item as JSON, or "" if there is none.
func getProviderStatus(di *lsv1alpha1.DeployItem) string {
	if di.Status.ProviderStatus == nil {
		return ""
	}
	return string(di.Status.ProviderStatus.Raw)
}

// waitForCall waits until the n-th call of an action has begun.
func (w *env) waitForCall(name string, action contract.Action, n int) {
	GinkgoHelper()
	ctx, cancel := w.withTimeout()
	defer cancel()
	_, err := w.fake.WaitForCall(ctx, w.key(name), action, n)
	Expect(err).NotTo(HaveOccurred())
}

// waitForReturn waits until the n-th call of an action has returned.
func (w *env) waitForReturn(name string, action contract.Action, n int) landscapertest.Call {
	GinkgoHelper()
	ctx, cancel := w.withTimeout()
	defer cancel()
	call, err := w.fake.WaitForReturn(ctx, w.key(name), action, n)
	Expect(err).NotTo(HaveOccurred())
	return call
}

var _ = registerSpecs("Aborts, interrupts and timeouts", func(e *cluster) {
	It("an abort cancels the running call, calls Abort, and ends the run as Failed [L31, C4, C6] [H-35]", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(storeProviderStatus("half"), landscapertest.BlockUntilCancelled()))
		w.run(setSlowBackoff)
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.setOperation("a", contract.AbortOperation)
		Expect(w.waitForReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrAborted))
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal(contract.AbortedReason))
		Expect(getProviderStatus(di)).To(ContainSubstring("half"), "the provider status is kept")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
			_, since := di.Annotations[contract.AbortTimestampAnnotation]
			return !operation && !since
		})
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort}))
		w.expectUnchanged("a")
	})

	It("an abort that fails is repeated, and its error does not become the error of the item [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.fake.QueueAnswers(contract.ActionAbort, landscapertest.ReturnError(errTrouble), landscapertest.ReturnWaitFor("the children", 20*time.Millisecond))
		w.run()
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.setOperation("a", contract.AbortOperation)
		Expect(w.finished("a").Status.LastError.Reason).To(Equal(contract.AbortedReason))
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort, contract.ActionAbort, contract.ActionAbort}))
		for _, di := range w.listVersions("a") {
			if di.Status.LastError != nil {
				Expect(di.Status.LastError.Message).NotTo(ContainSubstring(deployerlib.ErrAborted.Error()))
			}
		}
	})

	It("an abort that does not end is given up after its timeout [C6]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("abort", time.Hour))
		w.fake.SetDefaultAnswer(contract.ActionAbort, landscapertest.ReturnError(errTrouble))
		w.run()
		w.createAndStart("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		// Move the start of the run one hour back, so that the run is older than the abort that is requested below.
		w.updateStatus("a", func(di *lsv1alpha1.DeployItem) {
			for _, at := range []*metav1.Time{di.Status.LastReconcileTime, di.Status.JobIDGenerationTime} {
				if at != nil {
					at.Time = at.Add(-time.Hour)
				}
			}
		})
		w.update("a", withOperation(contract.AbortOperation),
			withAnnotation(contract.AbortTimestampAnnotation, time.Now().Add(-contract.AbortTimeout+2*time.Second).UTC().Format(time.RFC3339)))
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal(contract.AbortingTimeoutReason))
		Expect(getErrorCodes(di)).To(ConsistOf(lsv1alpha1.ErrorTimeout))
		Expect(di.Status.LastError.Message).To(ContainSubstring("trouble"))
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
	})

	It("an abort of a finished run is removed without a call [Lx7, C6]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		done := w.runSuccessfully("a")
		w.setOperation("a", contract.AbortOperation)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
			_, since := di.Annotations[contract.AbortTimestampAnnotation]
			return !operation && !since
		})
		Expect(di.Status).To(Equal(done.Status))
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	It("an interrupt by Landscaper cancels the running call, and only the provider status of this call is written [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(storeProviderStatus("half"), landscapertest.BlockUntilCancelled()))
		w.run(setSlowBackoff)
		w.createAndStart("a")
		w.waitForCall("a", contract.ActionReconcile, 1)
		w.cancelJob("a")
		Expect(w.waitForReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrInterrupted))
		w.waitForReturn("a", contract.ActionAbort, 1)
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return getProviderStatus(di) != "" })
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort}))
		w.startJob("a")
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("an interrupt by Landscaper between two calls starts no other call [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the interrupt", time.Hour))
		w.run()
		w.createAndStart("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.cancelJob("a")
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	DescribeTable("the timeout ends a run [C10]",
		func(ctx SpecContext, answer landscapertest.Answer, hook *extension.HookResult, calls int, cause string) {
			w := e.begin(ctx).registerAllHooks()
			if hook != nil {
				w.setHook(extension.BeforeReconcileHook, landscapertest.ReturnResult(hook, nil))
			}
			w.fake.SetDefaultAnswer(contract.ActionReconcile, answer)
			w.run(setSlowBackoff)
			w.createAndStart("a", withTimeout(6*time.Second))
			di := w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Reason).To(Equal(lsv1alpha1.ProgressingTimeoutReason))
			Expect(getErrorCodes(di)).To(ConsistOf(lsv1alpha1.ErrorTimeout))
			Expect(di.Status.LastError.Message).To(ContainSubstring(cause))
			Expect(w.listCalls("a")).To(HaveLen(calls))
			w.expectUnchanged("a")
		},
		Entry("the deployer is in a call", world.Slow, landscapertest.BlockUntilCancelled(), nil, 1, "6s"),
		Entry("the deployer waits", world.Slow, landscapertest.ReturnWaitFor("the weather", time.Hour), nil, 1, "the weather"),
		Entry("the deployer is between two retries", world.Slow, landscapertest.ReturnError(errTrouble), nil, 1, "trouble"),
		Entry("a hook aborts with a requeue", world.Slow, nil, newAbortResult(time.Hour), 0, "6s"),
		Entry("a hook aborts without a requeue", world.Slow, nil, newAbortResult(0), 0, "6s"),
	)

	It("the timeout error names the call that was cancelled", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.run()
		w.createAndStart("a", withTimeout(6*time.Second))
		Expect(w.waitForReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrDeadline))
		w.finished("a")
		Expect(w.fake.CountCalls(w.key("a"), contract.ActionAbort)).To(BeZero(), "a deadline does not call Abort")
	})

	It("the timeout ends a deletion, and keeps the finalizer [Lx6, C13]", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionDelete, landscapertest.ReturnWaitFor("the children", time.Hour))
		w.run()
		w.runSuccessfully("a", withTimeout(6*time.Second))
		w.delete("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(contract.FailedPhase(e.revision, true)))
		Expect(di.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		w.expectUnchanged("a")
		w.fake.SetDefaultAnswer(contract.ActionDelete, nil)
		w.startJob("a")
		w.waitUntilDeleted("a")
	})
})
