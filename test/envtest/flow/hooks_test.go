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

// The function `then` returns a new list that consists of the given hook types and the additional hook types.
func then(types []extension.HookType, more ...extension.HookType) []extension.HookType {
	return append(append([]extension.HookType{}, types...), more...)
}

// abort returns a hook result that ends the current reconcile. The item is reconciled again after the given delay.
func abort(after time.Duration) *extension.HookResult {
	return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: after}}
}

// goOn returns a result that does not abort the reconcile.
func goOn() *extension.HookResult { return &extension.HookResult{} }

// The function `once` returns a script that has an effect only at its first call.
func once(script landscapertest.Script) landscapertest.Script {
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

// slowBackoff delays retries by an hour, so that no other reconcile can be mistaken for a retry.
func slowBackoff(args *deployerlib.DeployerArgs) {
	args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: 2 * time.Hour}
}

var _ = flow("Hooks", func(e *cluster) {
	It("the hooks of each type run in order, for each of the four actions [L2, L23, L51, L52, L53, L55]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run()

		w.succeeds("a")
		Expect(w.passOf(extension.BeforeReconcileHook)).To(Equal(then(toAny, extension.BeforeReconcileHook, extension.EndHook)))

		w.operate("a", lsv1alpha1.ForceReconcileOperation)
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionForceReconcile)
		Eventually(func() []extension.HookType { return w.passOf(extension.BeforeForceReconcileHook) }).
			Should(Equal(then(toAny, extension.BeforeForceReconcileHook, extension.EndHook)))
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })

		w.fake.On(contract.ActionReconcile, landscapertest.UntilCancelled())
		w.job("a")
		w.awaitCall("a", contract.ActionReconcile, 2)
		w.operate("a", contract.AbortOperation)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Failed))
		Expect(w.passOf(extension.BeforeAbortHook)).To(Equal(then(toAny, extension.BeforeAbortHook)), "the hook End is called only after a success")

		w.delete("a")
		w.gone("a")
		Expect(w.passOf(extension.BeforeDeleteHook)).To(Equal(then(toAny, extension.BeforeDeleteHook, extension.EndHook)))
		Expect(w.calls("a")).To(Equal([]contract.Action{
			contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionReconcile, contract.ActionAbort, contract.ActionDelete,
		}))
	})

	It("Start hooks receive no item, and run also for an item that does not exist [L23, L36]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run()
		w.succeeds("a")
		w.delete("a")
		w.gone("a")
		Eventually(w.passes).Should(ContainElement(Equal([]extension.HookType{extension.StartHook})), "the deleted item is reconciled once more")
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
		w := e.begin(ctx).hookAll().on(extension.StartHook, landscapertest.Returns(abort(50*time.Millisecond), nil))
		w.run()
		w.deploy("a")
		Eventually(func() int { return w.count(extension.StartHook) }).Should(BeNumerically(">", 3), "the requested requeue still takes place")
		w.stays("a")
		Expect(w.hooks.Types()).To(HaveEach(extension.StartHook))
		w.on(extension.StartHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	DescribeTable("a hook that aborts skips the action, and its result is returned [L8, L9, L10, L54]",
		func(ctx SpecContext, at extension.HookType, action contract.Action) {
			w := e.begin(ctx).hookAll()
			w.run(slowBackoff)
			w.succeeds("a")
			before := 1
			w.on(at, landscapertest.Returns(abort(50*time.Millisecond), nil))
			switch action {
			case contract.ActionDelete:
				w.delete("a")
			case contract.ActionForceReconcile:
				w.operate("a", lsv1alpha1.ForceReconcileOperation)
			case contract.ActionAbort:
				before++
				w.fake.On(contract.ActionReconcile, landscapertest.Wait("abort", time.Hour))
				w.job("a")
				w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
				w.operate("a", contract.AbortOperation)
			default:
				w.job("a")
			}
			Eventually(func() int { return w.count(at) }).Should(BeNumerically(">", 3))
			Expect(w.calls("a")).To(HaveLen(before))
			w.on(at, nil)
			Eventually(func() []contract.Action { return w.calls("a")[before:] }).Should(Equal([]contract.Action{action}))
		},
		Entry("BeforeAnyReconcile", extension.BeforeAnyReconcileHook, contract.ActionReconcile),
		Entry("BeforeReconcile", extension.BeforeReconcileHook, contract.ActionReconcile),
		Entry("BeforeForceReconcile", extension.BeforeForceReconcileHook, contract.ActionForceReconcile),
		Entry("BeforeDelete", extension.BeforeDeleteHook, contract.ActionDelete),
		Entry("BeforeAbort", extension.BeforeAbortHook, contract.ActionAbort),
	)

	It("an AfterResponsibilityCheck hook that aborts prevents all writes [L8, L44]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.AfterResponsibilityCheckHook, landscapertest.Returns(abort(50*time.Millisecond), nil))
		w.run()
		w.deploy("a")
		Eventually(func() int { return w.count(extension.AfterResponsibilityCheckHook) }).Should(BeNumerically(">", 3))
		w.stays("a")
		Expect(w.get("a").Status.Phase).To(BeEmpty())
		Expect(w.get("a").Status.LastReconcileTime).To(BeNil())
		Expect(w.passOf(extension.AfterResponsibilityCheckHook)).To(Equal(toContract))
		w.on(extension.AfterResponsibilityCheckHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("all hooks of a type run although an earlier hook aborts [L11]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Hook(w.hooks.Hook("first"), extension.BeforeReconcileHook).Hook(w.hooks.Hook("second"), extension.BeforeReconcileHook)
		w.hooks.On("first", extension.BeforeReconcileHook, once(landscapertest.Returns(abort(50*time.Millisecond), nil)))
		w.run()
		w.succeeds("a")
		var names []string
		for _, call := range w.hooks.Calls() {
			names = append(names, call.Hook)
		}
		Expect(names).To(Equal([]string{"first", "second", "first", "second"}))
	})

	It("an error of one hook discards the results of all hooks [L12]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().
			on(extension.AfterResponsibilityCheckHook, landscapertest.Returns(&extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: 20 * time.Millisecond}}, nil)).
			on(extension.BeforeReconcileHook, landscapertest.Returns(abort(20*time.Millisecond), errors.New("hook trouble")))
		w.run(slowBackoff)
		w.deploy("a")
		w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		passes := len(w.passes())
		Consistently(func() int { return len(w.passes()) }).Should(Equal(passes))
		Expect(w.calls("a")).To(BeEmpty())
	})

	It("a hook that requests a requeue is called again immediately, even if it also requests a delay [L20, L22]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run(slowBackoff)
		w.succeeds("a")
		before := w.count(extension.ShouldReconcileHook)
		left := 5
		w.on(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if left--; left < 0 {
				return nil, nil
			}
			res := abort(time.Hour)
			res.ReconcileResult.Requeue = true
			return res, nil
		})
		w.fake.Runtime().Trigger(w.key("a"))
		Eventually(func() int { return w.count(extension.ShouldReconcileHook) - before }).WithTimeout(10 * time.Second).Should(Equal(6))
		Consistently(func() int { return w.count(extension.ShouldReconcileHook) - before }).Should(Equal(6))
	})

	It("the result of an End hook is merged into the result of the reconcile [L57]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().
			on(extension.EndHook, landscapertest.Returns(&extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: 100 * time.Millisecond}}, nil))
		w.run(slowBackoff)
		w.succeeds("a")
		Eventually(func() [][]extension.HookType {
			passes := w.passes()
			return passes[max(0, len(passes)-2):]
		}).Should(Equal([][]extension.HookType{then(toAny, extension.BeforeReconcileHook, extension.EndHook), toShould}))
		Expect(w.calls("a")).To(HaveLen(1))
	})

	It("End hooks run only after a success [L56]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run()
		w.fake.On(contract.ActionReconcile, landscapertest.Fail(errors.New("trouble")), landscapertest.Wait("more", 20*time.Millisecond))
		w.succeeds("a")
		Expect(w.calls("a")).To(HaveLen(3))
		Expect(w.count(extension.BeforeReconcileHook)).To(Equal(3))
		Expect(w.count(extension.EndHook)).To(Equal(1))
	})

	It("End hooks run before the final write, and the action is repeated when they fail [L55]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.EndHook, once(func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			return nil, errors.New("end trouble")
		}))
		w.run()
		w.succeeds("a")
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionReconcile}))
		Expect(w.versions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil && !contract.IsFinal(di.Status.Phase)
		})))
	})

	DescribeTable("an error of a later hook is written to the status, and the phase stays unchanged [Lx3]",
		func(ctx SpecContext, at extension.HookType) {
			w := e.begin(ctx).hookAll().on(at, landscapertest.Returns(nil, errors.New("hook trouble")))
			w.run()
			w.deploy("a")
			di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
			Expect(di.Status.LastError.Message).To(And(ContainSubstring("hook trouble"), ContainSubstring(string(at))))
			Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse())
			w.on(at, nil)
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
			w := e.begin(ctx).hookAll().on(at, landscapertest.Returns(nil, errors.New("hook trouble")))
			w.run()
			w.deploy("a")
			Eventually(func() int { return w.count(at) }).Should(BeNumerically(">", 2))
			w.stays("a")
			Expect(w.get("a").Status.LastError).To(BeNil())
			w.on(at, nil)
			Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		},
		Entry(nil, extension.StartHook),
		Entry(nil, extension.DuringResponsibilityCheckHook),
	)

	It("an error of a hook on a finished item is reported without a change of the phase [Lx3]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run(slowBackoff)
		w.succeeds("a")
		w.on(extension.ShouldReconcileHook, landscapertest.Returns(nil, errors.New("hook trouble")))
		w.fake.Runtime().Trigger(w.key("a"))
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil || len(di.Status.Conditions) > 0
		})
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		if !e.jobs() {
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
		w := e.begin(ctx).hookAll().on(extension.AfterResponsibilityCheckHook,
			func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
				di.Status.Conditions = contract.SetCondition(di.Status.Conditions, mine, lsv1alpha1.ConditionTrue, "Seen", "by a hook", time.Now())
				return abort(0), nil
			})
		w.run()
		w.create("a")
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return len(di.Status.Conditions) > 0 })
		Expect(contract.GetCondition(di.Status.Conditions, mine)).NotTo(BeNil())
		Expect(di.Status.Phase).To(BeEmpty())
		Expect(di.Status.ObservedGeneration).To(BeZero())
	})
})
