// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// applyConfigMap returns an answer that deploys a ConfigMap with the name of the item.
func (w *env) applyConfigMap() landscapertest.Answer {
	return func(ctx context.Context, in landscapertest.Input) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.Item.Namespace, Name: in.Item.Name}}
		body, err := json.Marshal(map[string]any{"data": map[string]string{"replicas": "3"}})
		if err != nil {
			return err
		}
		if err := w.client.Create(ctx, cm); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return w.client.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", body))
	}
}

func (w *env) getReplicas(name string) string {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.client.Get(w.ctx, w.key(name), cm)).To(Succeed())
	return cm.Data["replicas"]
}

// setReplicasToZero sets the replicas in the ConfigMap of an item to 0, as an operator would who scales down at night
// and then forgets to scale up again.
func (w *env) setReplicasToZero(name string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.client.Get(w.ctx, w.key(name), cm)).To(Succeed())
	cm.Data["replicas"] = "0"
	Expect(w.client.Update(w.ctx, cm)).To(Succeed())
}

// newPeriodicReconcile returns the setup of an extension that reconciles all items periodically, with the given
// interval.
func newPeriodicReconcile(d time.Duration) extension.ReconcileExtensionHookSetup {
	return continuousreconcile.ContinuousReconcileExtensionSetup(continuousreconcile.FromSpec(
		func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
			return &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: d}}, nil
		}))
}

// expectSameJob requires that a finished item shows the same phase and the same finished job in all versions since the
// last call of the method `forget`.
func (w *env) expectSameJob(name string) {
	GinkgoHelper()
	versions := w.listVersions(name)
	for _, di := range versions {
		Expect(di.Status.Phase).To(Equal(versions[0].Status.Phase))
		Expect(di.Status.JobID).To(Equal(versions[0].Status.JobID))
		Expect(di.Status.JobIDFinished).To(Equal(versions[0].Status.JobID))
	}
}

var _ = registerSpecs("Forced runs", func(e *cluster) {
	It("a finished item is left alone without hooks [L4, L29, C8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		w.runSuccessfully("a")
		w.fake.Runtime().Trigger(w.key("a"))
		w.update("a", withAnnotation("example.com/note", "nothing that matters"))
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(1))
	})

	It("a schedule overwrites manual edits although the item did not change [L3, L45]", func(ctx SpecContext) {
		const period = 300 * time.Millisecond
		w := e.begin(ctx).registerAllHooks()
		w.fake.SetDefaultAnswer(contract.ActionReconcile, w.applyConfigMap())
		var last atomic.Int64
		w.setHook(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			since := time.Since(time.UnixMilli(last.Load()))
			if since < period {
				return newAbortResult(period - since), nil
			}
			last.Store(time.Now().UnixMilli())
			return &extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: period}}, nil
		})
		w.run(setSlowBackoff)
		done := w.runSuccessfully("a")
		w.setReplicasToZero("a")
		Eventually(func() string { return w.getReplicas("a") }).Should(Equal("3"))
		w.setReplicasToZero("a")
		Eventually(func() string { return w.getReplicas("a") }).Should(Equal("3"), "the item is reconciled repeatedly")
		Expect(w.get("a").Generation).To(Equal(done.Generation))
		Expect(w.get("a").Status.JobID).To(Equal(done.Status.JobID))
	})

	It("a schedule runs a finished item without a change of its job [L3, Lx4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, w.applyConfigMap())
		setup := newPeriodicReconcile(time.Second)
		w.fake.RegisterHook(setup.Hook, setup.HookTypes...)
		w.run(setSlowBackoff)
		done := w.runSuccessfully("a")
		w.forget("a")
		w.setReplicasToZero("a")
		Eventually(func() string { return w.getReplicas("a") }).Should(Equal("3"))
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastReconcileTime.After(done.Status.LastReconcileTime.Time) && di.Status.Phase == phases.Succeeded
		})
		if !e.hasJobs() {
			Expect(w.listPhases("a")).To(HaveExactElements(phases.Succeeded, phases.Init, phases.Succeeded))
			return
		}
		w.expectSameJob("a")
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
		Expect(cond.Status).To(Equal(lsv1alpha1.ConditionFalse))
		Expect(cond.Reason).To(Equal("Succeeded"))
	})

	It("a schedule applies to failed items, but not to items that disable it or never ran [Lx4, Lx5]", func(ctx SpecContext) {
		w := e.begin(ctx)
		setup := newPeriodicReconcile(time.Second)
		w.fake.RegisterHook(setup.Hook, setup.HookTypes...)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Failed))
		w.run()
		w.create("never")
		w.createAndStart("failed")
		Expect(w.finished("failed").Status.Phase).To(Equal(phases.Failed))
		w.runSuccessfully("off", withAnnotation(continuousreconcile.ActiveAnnotation, "false"))
		Eventually(func() []contract.Action { return w.listCalls("failed") }).Should(HaveLen(3))
		Expect(w.listCalls("off")).To(HaveLen(1))
		Expect(w.listCalls("never")).To(BeEmpty())
		Expect(w.get("never").Status.LastReconcileTime).To(BeNil())
	})

	It("a forced run starts like any other run under the annotation revision, and in the background of a finished job otherwise [L28, L46]",
		func(ctx SpecContext) {
			w := e.begin(ctx).registerAllHooks()
			w.run()
			done := w.runSuccessfully("a")
			// Times in the status are whole seconds, so wait for the next second.
			w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
				return time.Now().Truncate(time.Second).After(di.Status.LastReconcileTime.Time)
			})
			w.forget("a")
			var handed atomic.Value
			w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
				handed.Store(w.get("a").Status)
				return nil
			})
			w.setHook(extension.ShouldReconcileHook, runOnce(landscapertest.ReturnResult(newContinueResult(), nil)))
			w.fake.Runtime().Trigger(w.key("a"))
			w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
			di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
				return di.Status.LastReconcileTime.After(done.Status.LastReconcileTime.Time) && contract.IsFinal(di.Status.Phase)
			})
			Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
			during, _ := handed.Load().(lsv1alpha1.DeployItemStatus)
			if e.hasJobs() {
				w.expectSameJob("a")
				Expect(during.Phase).To(Equal(phases.Succeeded))
				return
			}
			Expect(during.Phase).To(Equal(phases.Init))
			Expect(during.LastReconcileTime).To(Equal(di.Status.LastReconcileTime))
		})

	It("a hook that aborts does not prevent a run that is due, and aborts nothing later [L47, L48]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(newAbortResult(0), nil))
		w.run()
		w.runSuccessfully("a")
		Expect(w.findReconcile(extension.BeforeReconcileHook)).To(Equal(appendTypes(toAny, extension.BeforeReconcileHook, extension.EndHook)))
	})

	It("a requeue that a hook requests takes effect although no run is due [L49]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil))
		w.run(setSlowBackoff)
		w.runSuccessfully("a")
		before := w.sumHookCalls(extension.ShouldReconcileHook)
		Eventually(func() int { return w.sumHookCalls(extension.ShouldReconcileHook) }).Should(BeNumerically(">", before+5))
		Expect(w.listCalls("a")).To(HaveLen(1))
	})

	It("a run starts if one of several hooks requests it [L50]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.RegisterHook(w.hooks.NewHook("no"), extension.ShouldReconcileHook).RegisterHook(w.hooks.NewHook("yes"), extension.ShouldReconcileHook)
		w.hooks.SetHookAnswer("no", extension.ShouldReconcileHook, landscapertest.ReturnResult(newAbortResult(0), nil))
		w.run()
		w.runSuccessfully("a")
		w.fake.Runtime().Trigger(w.key("a"))
		Consistently(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(1))
		w.hooks.SetHookAnswer("yes", extension.ShouldReconcileHook, runOnce(landscapertest.ReturnResult(newContinueResult(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
	})
})

var _ = registerSpecs("Background runs of a finished job", func(e *cluster) {
	if !e.hasJobs() {
		return
	}

	It("a failed background run is repeated until it succeeds, also after a restart [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		first := w.run()
		w.runSuccessfully("a")
		w.forget("a")
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(errTrouble))
		w.setHook(extension.ShouldReconcileHook, runOnce(landscapertest.ReturnResult(newContinueResult(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return contract.GetCondition(di.Status.Conditions, contract.ConditionBackground) != nil
		})
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
		Expect(cond.Status).To(Equal(lsv1alpha1.ConditionTrue))
		Expect(cond.Message).To(ContainSubstring("trouble"))
		Expect(di.Status.LastError).To(BeNil(), "lastError belongs to jobs")
		Eventually(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(4), "the call is retried")
		first.Stop()
		w.fake.SetDefaultAnswer(contract.ActionReconcile, nil)
		w.run()
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
			return cond != nil && cond.Status == lsv1alpha1.ConditionFalse
		})
		w.expectSameJob("a")
	})

	It("a background run that waits does not change the phase [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()
		w.runSuccessfully("a")
		w.forget("a")
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("the weather", 50*time.Millisecond), landscapertest.SetPhase(phases.Progressing))
		w.setHook(extension.ShouldReconcileHook, runOnce(landscapertest.ReturnResult(newContinueResult(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		Eventually(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(4))
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
			return cond != nil && cond.Status == lsv1alpha1.ConditionFalse
		})
		w.expectSameJob("a")
	})

	It("a new job replaces a background run [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks()
		w.run()
		w.runSuccessfully("a")
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("something", time.Hour))
		w.setHook(extension.ShouldReconcileHook, runOnce(landscapertest.ReturnResult(newContinueResult(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return contract.GetCondition(di.Status.Conditions, contract.ConditionBackground) != nil
		})
		id := w.startJob("a")
		di := w.finished("a")
		Expect(di.Status.JobIDFinished).To(Equal(id))
		Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)).To(BeNil())
	})

	It("a background run does not start before a new spec, a deletion or the first job is processed [L25, L46]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.create("never")
		stop := w.run()
		Eventually(func() int { return w.sumHookCalls(extension.ShouldReconcileHook) }).Should(BeNumerically(">", 0))
		Consistently(func() []contract.Action { return w.listCalls("never") }).Should(BeEmpty())
		stop.Stop()

		w.setHook(extension.ShouldReconcileHook, nil)
		w.run()
		w.runSuccessfully("a")
		w.runSuccessfully("b")
		w.setHook(extension.ShouldReconcileHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.update("a", withConfig("new"))
		w.markDeleted("b")
		Consistently(func() int { return len(w.listCalls("a")) + len(w.listCalls("b")) }).Should(Equal(2))
		w.setHook(extension.ShouldReconcileHook, nil)
		w.startJob("a")
		w.waitForCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		w.startJob("b")
		w.waitForCalls("b", contract.ActionReconcile, contract.ActionDelete)
	})
})
