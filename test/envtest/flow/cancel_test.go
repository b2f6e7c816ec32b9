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

// provider returns an answer that stores the given value in the provider status.
func provider(value string) landscapertest.Answer {
	return landscapertest.Change(func(status *lsv1alpha1.DeployItemStatus) {
		status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"flow.deployerkit.dev/v1","kind":"Status","value":"` + value + `"}`)}
	})
}

// providerOf returns the provider status of an item as JSON, or "" if there is none.
func providerOf(di *lsv1alpha1.DeployItem) string {
	if di.Status.ProviderStatus == nil {
		return ""
	}
	return string(di.Status.ProviderStatus.Raw)
}

// awaitCall waits until the n-th call of an action has begun.
func (w *env) awaitCall(name string, action contract.Action, n int) {
	GinkgoHelper()
	ctx, cancel := w.soon()
	defer cancel()
	_, err := w.fake.AwaitCall(ctx, w.key(name), action, n)
	Expect(err).NotTo(HaveOccurred())
}

// awaitReturn waits until the n-th call of an action has returned.
func (w *env) awaitReturn(name string, action contract.Action, n int) landscapertest.Call {
	GinkgoHelper()
	ctx, cancel := w.soon()
	defer cancel()
	call, err := w.fake.AwaitReturn(ctx, w.key(name), action, n)
	Expect(err).NotTo(HaveOccurred())
	return call
}

var _ = flow("Aborts, interrupts and timeouts", func(e *cluster) {
	It("an abort cancels the running call, calls Abort, and ends the run as Failed [L31, C4, C6] [H-35]", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.InTurn(provider("half"), landscapertest.UntilCancelled()))
		w.run(slowBackoff)
		w.deploy("a")
		w.awaitCall("a", contract.ActionReconcile, 1)
		w.operate("a", contract.AbortOperation)
		Expect(w.awaitReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrAborted))
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal(contract.AbortedReason))
		Expect(providerOf(di)).To(ContainSubstring("half"), "the provider status is kept")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
			_, since := di.Annotations[contract.AbortTimestampAnnotation]
			return !operation && !since
		})
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort}))
		w.stays("a")
	})

	It("an abort that fails is repeated, and its error does not become the error of the item [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.UntilCancelled())
		w.fake.On(contract.ActionAbort, landscapertest.Fail(errTrouble), landscapertest.Wait("the children", 20*time.Millisecond))
		w.run()
		w.deploy("a")
		w.awaitCall("a", contract.ActionReconcile, 1)
		w.operate("a", contract.AbortOperation)
		Expect(w.finished("a").Status.LastError.Reason).To(Equal(contract.AbortedReason))
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort, contract.ActionAbort, contract.ActionAbort}))
		for _, di := range w.versions("a") {
			if di.Status.LastError != nil {
				Expect(di.Status.LastError.Message).NotTo(ContainSubstring(deployerlib.ErrAborted.Error()))
			}
		}
	})

	It("an abort that does not end is given up after its timeout [C6]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.Wait("abort", time.Hour))
		w.fake.Always(contract.ActionAbort, landscapertest.Fail(errTrouble))
		w.run()
		w.deploy("a")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		// Move the start of the run one hour back, so that the run is older than the abort that is requested below.
		w.status("a", func(di *lsv1alpha1.DeployItem) {
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
		Expect(codes(di)).To(ConsistOf(lsv1alpha1.ErrorTimeout))
		Expect(di.Status.LastError.Message).To(ContainSubstring("trouble"))
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
	})

	It("an abort of a finished run is removed without a call [Lx7, C6]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		done := w.succeeds("a")
		w.operate("a", contract.AbortOperation)
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
			_, since := di.Annotations[contract.AbortTimestampAnnotation]
			return !operation && !since
		})
		Expect(di.Status).To(Equal(done.Status))
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	It("an interrupt by Landscaper cancels the running call, and only the provider status of this call is written [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.InTurn(provider("half"), landscapertest.UntilCancelled()))
		w.run(slowBackoff)
		w.deploy("a")
		w.awaitCall("a", contract.ActionReconcile, 1)
		w.interrupt("a")
		Expect(w.awaitReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrInterrupted))
		w.awaitReturn("a", contract.ActionAbort, 1)
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return providerOf(di) != "" })
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
		w.stays("a")
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionAbort}))
		w.job("a")
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("an interrupt by Landscaper between two calls starts no other call [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.Wait("the interrupt", time.Hour))
		w.run()
		w.deploy("a")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		w.interrupt("a")
		w.stays("a")
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
	})

	DescribeTable("the timeout ends a run [C10]",
		func(ctx SpecContext, answer landscapertest.Answer, hook *extension.HookResult, calls int, cause string) {
			w := e.begin(ctx).hookAll()
			if hook != nil {
				w.on(extension.BeforeReconcileHook, landscapertest.Returns(hook, nil))
			}
			w.fake.Always(contract.ActionReconcile, answer)
			w.run(slowBackoff)
			w.deploy("a", withTimeout(6*time.Second))
			di := w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Reason).To(Equal(lsv1alpha1.ProgressingTimeoutReason))
			Expect(codes(di)).To(ConsistOf(lsv1alpha1.ErrorTimeout))
			Expect(di.Status.LastError.Message).To(ContainSubstring(cause))
			Expect(w.calls("a")).To(HaveLen(calls))
			w.stays("a")
		},
		Entry("during a call", world.Slow, landscapertest.UntilCancelled(), nil, 1, "6s"),
		Entry("while the deployer waits", world.Slow, landscapertest.Wait("the weather", time.Hour), nil, 1, "the weather"),
		Entry("between retries", world.Slow, landscapertest.Fail(errTrouble), nil, 1, "trouble"),
		Entry("while a hook aborts with a requeue", world.Slow, nil, abort(time.Hour), 0, "6s"),
		Entry("while a hook aborts without a requeue", world.Slow, nil, abort(0), 0, "6s"),
	)

	It("the timeout error names the call that was cancelled", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.On(contract.ActionReconcile, landscapertest.UntilCancelled())
		w.run()
		w.deploy("a", withTimeout(6*time.Second))
		Expect(w.awaitReturn("a", contract.ActionReconcile, 1).Cause).To(MatchError(deployerlib.ErrDeadline))
		w.finished("a")
		Expect(w.fake.Count(w.key("a"), contract.ActionAbort)).To(BeZero(), "a deadline does not call Abort")
	})

	It("the timeout ends a deletion, and keeps the finalizer [Lx6, C13]", world.Slow, func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Always(contract.ActionDelete, landscapertest.Wait("the children", time.Hour))
		w.run()
		w.succeeds("a", withTimeout(6*time.Second))
		w.delete("a")
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(contract.FailedPhase(e.revision, true)))
		Expect(di.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		w.stays("a")
		w.fake.Always(contract.ActionDelete, nil)
		w.job("a")
		w.gone("a")
	})
})
