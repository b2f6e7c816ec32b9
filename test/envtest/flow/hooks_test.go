// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var (
	toResponsibility = []extension.HookType{extension.StartHook, extension.DuringResponsibilityCheckHook}
	toContract       = append(append([]extension.HookType{}, toResponsibility...), extension.AfterResponsibilityCheckHook)
	toShould         = append(append([]extension.HookType{}, toContract...), extension.ShouldReconcileHook)
	toAny            = append(append([]extension.HookType{}, toShould...), extension.BeforeAnyReconcileHook)
)

// appendTypes returns a new list that consists of the given hook types and the additional hook types.
func appendTypes(types []extension.HookType, more ...extension.HookType) []extension.HookType {
	return append(append([]extension.HookType{}, types...), more...)
}

// newAbortResult returns a hook result that ends the current reconcile. The item is reconciled again after the given
// delay.
func newAbortResult(after time.Duration) *extension.HookResult {
	return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: after}}
}

// newContinueResult returns a result that does not abort the reconcile.
func newContinueResult() *extension.HookResult { return &extension.HookResult{} }

// runOnce returns a script that has an effect only at its first call.
func runOnce(script landscapertest.HookAnswer) landscapertest.HookAnswer {
	done := false // no lock is needed, because the hooks of one item never run at the same time
	return func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) (*extension.HookResult, error) {
		if done {
			return nil, nil
		}
		done = true
		return script(ctx, di, target)
	}
}

// errTrouble is an error after which a call is retried.
var errTrouble = errors.New("trouble")

// setSlowBackoff delays retries by an hour, so that no other reconcile can be mistaken for a retry.
func setSlowBackoff(args *deployerlib.DeployerArgs) {
	args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: 2 * time.Hour}
}

var _ = registerSpecs("Hooks", func(e *cluster) {
	It("the hooks of each type run in order, for each of the four actions [L2, L23, L51, L52, L53, L55]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()

		w.runSuccessfully("a")
		Expect(w.findReconcile(extension.BeforeReconcileHook)).To(Equal(appendTypes(toAny, extension.BeforeReconcileHook, extension.EndHook)))

		w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionForceReconcile)
		Eventually(func() []extension.HookType { return w.findReconcile(extension.BeforeForceReconcileHook) }).
			Should(Equal(appendTypes(toAny, extension.BeforeForceReconcileHook, extension.EndHook)))
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })

		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.startJob("a")
		w.waitForCall("a", contract.ActionReconcile, 2)
		w.setOperation("a", contract.AbortOperation)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Failed))
		Expect(w.findReconcile(extension.BeforeAbortHook)).To(Equal(appendTypes(toAny, extension.BeforeAbortHook)), "the hook End is called only after a success")

		w.delete("a")
		w.waitUntilDeleted("a")
		Expect(w.findReconcile(extension.BeforeDeleteHook)).To(Equal(appendTypes(toAny, extension.BeforeDeleteHook, extension.EndHook)))
		Expect(w.listCalls("a")).To(Equal([]contract.Action{
			contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionReconcile, contract.ActionAbort, contract.ActionDelete,
		}))
	})

	It("Start hooks receive no item, and run also for an item that does not exist [L23, L36]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()
		w.runSuccessfully("a")
		w.delete("a")
		w.waitUntilDeleted("a")
		Eventually(w.listReconciles).Should(ContainElement(Equal([]extension.HookType{extension.StartHook})), "the deleted item is reconciled once more")
		for _, call := range w.hooks.Calls() {
			if call.Type == extension.StartHook {
				Expect(call.Item).To(BeNil())
				Expect(call.Target).To(BeNil())
			} else {
				Expect(call.Item).NotTo(BeNil(), string(call.Type))
			}
		}
	})

	It("a Start hook that aborts ends the reconcile [L8, L37]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.StartHook, landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil))
		w.run()
		w.createAndStart("a")
		Eventually(func() int { return w.sumHookCalls(extension.StartHook) }).Should(BeNumerically(">", 3), "the requested requeue still takes place")
		w.expectUnchanged("a")
		Expect(w.hooks.Types()).To(HaveEach(extension.StartHook))
		w.setHook(extension.StartHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	DescribeTable("a hook that aborts skips the action, and its result is returned [L8, L9, L10, L54]",
		func(ctx SpecContext, at extension.HookType, action contract.Action) {
			w := e.begin(ctx).registerAllHooks()
			w.run(setSlowBackoff)
			w.runSuccessfully("a")
			before := 1
			w.setHook(at, landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil))
			switch action {
			case contract.ActionDelete:
				w.delete("a")
			case contract.ActionForceReconcile:
				w.setOperation("a", lsv1alpha1.ForceReconcileOperation)
			case contract.ActionAbort:
				before++
				w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("abort", time.Hour))
				w.startJob("a")
				w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
				w.setOperation("a", contract.AbortOperation)
			default:
				w.startJob("a")
			}
			Eventually(func() int { return w.sumHookCalls(at) }).Should(BeNumerically(">", 3))
			Expect(w.listCalls("a")).To(HaveLen(before))
			w.setHook(at, nil)
			Eventually(func() []contract.Action { return w.listCalls("a")[before:] }).Should(Equal([]contract.Action{action}))
		},
		Entry("BeforeAnyReconcile", extension.BeforeAnyReconcileHook, contract.ActionReconcile),
		Entry("BeforeReconcile", extension.BeforeReconcileHook, contract.ActionReconcile),
		Entry("BeforeForceReconcile", extension.BeforeForceReconcileHook, contract.ActionForceReconcile),
		Entry("BeforeDelete", extension.BeforeDeleteHook, contract.ActionDelete),
		Entry("BeforeAbort", extension.BeforeAbortHook, contract.ActionAbort),
	)

	It("an AfterResponsibilityCheck hook that aborts prevents all writes [L8, L44]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.AfterResponsibilityCheckHook, landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil))
		w.run()
		w.createAndStart("a")
		Eventually(func() int { return w.sumHookCalls(extension.AfterResponsibilityCheckHook) }).Should(BeNumerically(">", 3))
		w.expectUnchanged("a")
		Expect(w.get("a").Status.Phase).To(BeEmpty())
		Expect(w.get("a").Status.LastReconcileTime).To(BeNil())
		Expect(w.findReconcile(extension.AfterResponsibilityCheckHook)).To(Equal(toContract))
		w.setHook(extension.AfterResponsibilityCheckHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("all hooks of a type run although an earlier hook aborts [L11]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.RegisterHook(w.hooks.NewHook("first"), extension.BeforeReconcileHook).RegisterHook(w.hooks.NewHook("second"), extension.BeforeReconcileHook)
		w.hooks.SetHookAnswer("first", extension.BeforeReconcileHook, runOnce(landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil)))
		w.run()
		w.runSuccessfully("a")
		var names []string
		for _, call := range w.hooks.Calls() {
			names = append(names, call.Hook)
		}
		Expect(names).To(Equal([]string{"first", "second", "first", "second"}))
	})

	It("an error of one hook discards the results of all hooks [L12]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().
			setHook(extension.AfterResponsibilityCheckHook, landscapertest.ReturnResult(&extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: 20 * time.Millisecond}}, nil)).
			setHook(extension.BeforeReconcileHook, landscapertest.ReturnResult(newAbortResult(20*time.Millisecond), errors.New("hook trouble")))
		w.run(setSlowBackoff)
		w.createAndStart("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		passes := len(w.listReconciles())
		Consistently(func() int { return len(w.listReconciles()) }).Should(Equal(passes))
		Expect(w.listCalls("a")).To(BeEmpty())
	})

	It("a hook that requests a requeue is called again immediately, even if it also requests a delay [L20, L22]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		before := w.sumHookCalls(extension.ShouldReconcileHook)
		left := 5
		w.setHook(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if left--; left < 0 {
				return nil, nil
			}
			res := newAbortResult(time.Hour)
			res.ReconcileResult.Requeue = true
			return res, nil
		})
		w.fake.Runtime().Trigger(w.key("a"))
		Eventually(func() int { return w.sumHookCalls(extension.ShouldReconcileHook) - before }).WithTimeout(10 * time.Second).Should(Equal(6))
		Consistently(func() int { return w.sumHookCalls(extension.ShouldReconcileHook) - before }).Should(Equal(6))
	})

	It("the result of an End hook is merged into the result of the reconcile [L57]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().
			setHook(extension.EndHook, landscapertest.ReturnResult(&extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: 100 * time.Millisecond}}, nil))
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		Eventually(func() [][]extension.HookType {
			passes := w.listReconciles()
			return passes[max(0, len(passes)-2):]
		}).Should(Equal([][]extension.HookType{appendTypes(toAny, extension.BeforeReconcileHook, extension.EndHook), toShould}))
		Expect(w.listCalls("a")).To(HaveLen(1))
	})

	It("End hooks run only after a success [L56]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errors.New("trouble")), landscapertest.ReturnWaitFor("more", 20*time.Millisecond))
		w.runSuccessfully("a")
		Expect(w.listCalls("a")).To(HaveLen(3))
		Expect(w.sumHookCalls(extension.BeforeReconcileHook)).To(Equal(3))
		Expect(w.sumHookCalls(extension.EndHook)).To(Equal(1))
	})

	It("End hooks run before the final write, and the action is repeated when they fail [L55]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.EndHook, runOnce(func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			return nil, errors.New("end trouble")
		}))
		w.run()
		w.runSuccessfully("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionReconcile}))
		Expect(w.listVersions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil && !contract.IsFinal(di.Status.Phase)
		})))
	})

	DescribeTable("an error of a later hook is written to the status, and the phase stays unchanged [Lx3]",
		func(ctx SpecContext, at extension.HookType) {
			w := e.begin(ctx).registerAllHooks().setHook(at, landscapertest.ReturnResult(nil, errors.New("hook trouble")))
			w.run()
			w.createAndStart("a")
			di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
			Expect(di.Status.LastError.Message).To(And(ContainSubstring("hook trouble"), ContainSubstring(string(at))))
			Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse())
			w.setHook(at, nil)
			di = w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(di.Status.LastError).To(BeNil())
		},
		Entry(nil, extension.AfterResponsibilityCheckHook),
		Entry(nil, extension.ShouldReconcileHook),
		Entry(nil, extension.BeforeAnyReconcileHook),
		Entry(nil, extension.BeforeReconcileHook),
		Entry(nil, extension.EndHook),
	)

	DescribeTable("an error of an early hook is not written to the status [Lx3]",
		func(ctx SpecContext, at extension.HookType) {
			w := e.begin(ctx).registerAllHooks().setHook(at, landscapertest.ReturnResult(nil, errors.New("hook trouble")))
			w.run()
			w.createAndStart("a")
			Eventually(func() int { return w.sumHookCalls(at) }).Should(BeNumerically(">", 2))
			w.expectUnchanged("a")
			Expect(w.get("a").Status.LastError).To(BeNil())
			w.setHook(at, nil)
			Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		},
		Entry(nil, extension.StartHook),
		Entry(nil, extension.DuringResponsibilityCheckHook),
	)

	It("an error of a hook on a finished item is reported without a change of the phase [Lx3]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		w.setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(nil, errors.New("hook trouble")))
		w.fake.Runtime().Trigger(w.key("a"))
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil || len(di.Status.Conditions) > 0
		})
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		if !e.hasJobs() {
			Expect(di.Status.LastError.Message).To(ContainSubstring("hook trouble"))
			return
		}
		Expect(di.Status.LastError).To(BeNil())
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
		Expect(cond.Status).To(Equal(lsv1alpha1.ConditionUnknown))
		Expect(cond.Message).To(ContainSubstring("hook trouble"))
	})

	It("a condition that a hook sets on an item without a status is stored", func(ctx SpecContext) {
		const mine lsv1alpha1.ConditionType = "Seen"
		w := e.begin(ctx).registerAllHooks().setHook(extension.AfterResponsibilityCheckHook,
			func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
				di.Status.Conditions = contract.SetCondition(di.Status.Conditions, mine, lsv1alpha1.ConditionTrue, "Seen", "by a hook", time.Now())
				return newAbortResult(0), nil
			})
		w.run()
		w.create("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return len(di.Status.Conditions) > 0 })
		Expect(contract.GetCondition(di.Status.Conditions, mine)).NotTo(BeNil())
		Expect(di.Status.Phase).To(BeEmpty())
		Expect(di.Status.ObservedGeneration).To(BeZero())
	})
})
