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

func (w *env) replicas(name string) string {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.client.Get(w.ctx, w.key(name), cm)).To(Succeed())
	return cm.Data["replicas"]
}

// editByHand sets the replicas in the ConfigMap of an item to 0, as an operator would who scales down at night and then
// forgets to scale up again.
func (w *env) editByHand(name string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.client.Get(w.ctx, w.key(name), cm)).To(Succeed())
	cm.Data["replicas"] = "0"
	Expect(w.client.Update(w.ctx, cm)).To(Succeed())
}

// The function `every` returns the setup of an extension that reconciles all items periodically, with the given
// interval.
func every(d time.Duration) extension.ReconcileExtensionHookSetup {
	return continuousreconcile.ContinuousReconcileExtensionSetup(continuousreconcile.FromSpec(
		func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
			return &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: d}}, nil
		}))
}

// keepsItsJob requires that a finished item shows the same phase and the same finished job in all versions since the
// last call of the method `forget`.
func (w *env) keepsItsJob(name string) {
	GinkgoHelper()
	versions := w.versions(name)
	for _, di := range versions {
		Expect(di.Status.Phase).To(Equal(versions[0].Status.Phase))
		Expect(di.Status.JobID).To(Equal(versions[0].Status.JobID))
		Expect(di.Status.JobIDFinished).To(Equal(versions[0].Status.JobID))
	}
}

var _ = flow("Forced runs", func(e *cluster) {
	It("a finished item is left alone without hooks [L4, L29, C8]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		w.succeeds("a")
		w.fake.Runtime().Trigger(w.key("a"))
		w.update("a", withAnnotation("example.com/note", "nothing that matters"))
		w.stays("a")
		Expect(w.calls("a")).To(HaveLen(1))
	})

	It("a schedule overwrites manual edits although the item did not change [L3, L45]", func(ctx SpecContext) {
		const period = 300 * time.Millisecond
		w := e.begin(ctx).hookAll()
		w.fake.Always(contract.ActionReconcile, w.applyConfigMap())
		var last atomic.Int64
		w.on(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			since := time.Since(time.UnixMilli(last.Load()))
			if since < period {
				return abort(period - since), nil
			}
			last.Store(time.Now().UnixMilli())
			return &extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: period}}, nil
		})
		w.run(slowBackoff)
		done := w.succeeds("a")
		w.editByHand("a")
		Eventually(func() string { return w.replicas("a") }).Should(Equal("3"))
		w.editByHand("a")
		Eventually(func() string { return w.replicas("a") }).Should(Equal("3"), "the item is reconciled repeatedly")
		Expect(w.get("a").Generation).To(Equal(done.Generation))
		Expect(w.get("a").Status.JobID).To(Equal(done.Status.JobID))
	})

	It("a schedule runs a finished item without a change of its job [L3, Lx4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Always(contract.ActionReconcile, w.applyConfigMap())
		setup := every(time.Second)
		w.fake.Hook(setup.Hook, setup.HookTypes...)
		w.run(slowBackoff)
		done := w.succeeds("a")
		w.forget("a")
		w.editByHand("a")
		Eventually(func() string { return w.replicas("a") }).Should(Equal("3"))
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastReconcileTime.After(done.Status.LastReconcileTime.Time) && di.Status.Phase == phases.Succeeded
		})
		if !e.jobs() {
			Expect(w.shown("a")).To(HaveExactElements(phases.Succeeded, phases.Init, phases.Succeeded))
			return
		}
		w.keepsItsJob("a")
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
		Expect(cond.Status).To(Equal(lsv1alpha1.ConditionFalse))
		Expect(cond.Reason).To(Equal("Succeeded"))
	})

	It("a schedule applies to failed items, but not to items that disable it or never ran [Lx4, Lx5]", func(ctx SpecContext) {
		w := e.begin(ctx)
		setup := every(time.Second)
		w.fake.Hook(setup.Hook, setup.HookTypes...)
		w.fake.On(contract.ActionReconcile, landscapertest.Phase(phases.Failed))
		w.run()
		w.create("never")
		w.deploy("failed")
		Expect(w.finished("failed").Status.Phase).To(Equal(phases.Failed))
		w.succeeds("off", withAnnotation(continuousreconcile.ActiveAnnotation, "false"))
		Eventually(func() []contract.Action { return w.calls("failed") }).Should(HaveLen(3))
		Expect(w.calls("off")).To(HaveLen(1))
		Expect(w.calls("never")).To(BeEmpty())
		Expect(w.get("never").Status.LastReconcileTime).To(BeNil())
	})

	It("a forced run starts like any other run under the annotation revision, and in the background of a finished job otherwise [L28, L46]",
		func(ctx SpecContext) {
			w := e.begin(ctx).hookAll()
			w.run()
			done := w.succeeds("a")
			// Times in the status are whole seconds, so wait for the next second.
			w.until("a", func(di *lsv1alpha1.DeployItem) bool {
				return time.Now().Truncate(time.Second).After(di.Status.LastReconcileTime.Time)
			})
			w.forget("a")
			var handed atomic.Value
			w.fake.On(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
				handed.Store(w.get("a").Status)
				return nil
			})
			w.on(extension.ShouldReconcileHook, once(landscapertest.Returns(goOn(), nil)))
			w.fake.Runtime().Trigger(w.key("a"))
			w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionReconcile)
			di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
				return di.Status.LastReconcileTime.After(done.Status.LastReconcileTime.Time) && contract.IsFinal(di.Status.Phase)
			})
			Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
			during, _ := handed.Load().(lsv1alpha1.DeployItemStatus)
			if e.jobs() {
				w.keepsItsJob("a")
				Expect(during.Phase).To(Equal(phases.Succeeded))
				return
			}
			Expect(during.Phase).To(Equal(phases.Init))
			Expect(during.LastReconcileTime).To(Equal(di.Status.LastReconcileTime))
		})

	It("a hook that aborts does not prevent a run that is due, and aborts nothing later [L47, L48]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.ShouldReconcileHook, landscapertest.Returns(abort(0), nil))
		w.run()
		w.succeeds("a")
		Expect(w.passOf(extension.BeforeReconcileHook)).To(Equal(then(toAny, extension.BeforeReconcileHook, extension.EndHook)))
	})

	It("a requeue that a hook requests takes effect although no run is due [L49]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.ShouldReconcileHook, landscapertest.Returns(abort(50*time.Millisecond), nil))
		w.run(slowBackoff)
		w.succeeds("a")
		before := w.count(extension.ShouldReconcileHook)
		Eventually(func() int { return w.count(extension.ShouldReconcileHook) }).Should(BeNumerically(">", before+5))
		Expect(w.calls("a")).To(HaveLen(1))
	})

	It("a run starts if one of several hooks requests it [L50]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Hook(w.hooks.Hook("no"), extension.ShouldReconcileHook).Hook(w.hooks.Hook("yes"), extension.ShouldReconcileHook)
		w.hooks.On("no", extension.ShouldReconcileHook, landscapertest.Returns(abort(0), nil))
		w.run()
		w.succeeds("a")
		w.fake.Runtime().Trigger(w.key("a"))
		Consistently(func() []contract.Action { return w.calls("a") }).Should(HaveLen(1))
		w.hooks.On("yes", extension.ShouldReconcileHook, once(landscapertest.Returns(goOn(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionReconcile)
	})
})

var _ = flow("Background runs of a finished job", func(e *cluster) {
	if !e.jobs() {
		return
	}

	It("a failed background run is repeated until it succeeds, also after a restart [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		first := w.run()
		w.succeeds("a")
		w.forget("a")
		w.fake.Always(contract.ActionReconcile, landscapertest.Fail(errTrouble))
		w.on(extension.ShouldReconcileHook, once(landscapertest.Returns(goOn(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return contract.GetCondition(di.Status.Conditions, contract.ConditionBackground) != nil
		})
		cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
		Expect(cond.Status).To(Equal(lsv1alpha1.ConditionTrue))
		Expect(cond.Message).To(ContainSubstring("trouble"))
		Expect(di.Status.LastError).To(BeNil(), "lastError belongs to jobs")
		Eventually(func() []contract.Action { return w.calls("a") }).Should(HaveLen(4), "the call is retried")
		first.Stop()
		w.fake.Always(contract.ActionReconcile, nil)
		w.run()
		w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
			return cond != nil && cond.Status == lsv1alpha1.ConditionFalse
		})
		w.keepsItsJob("a")
	})

	It("a background run that waits does not change the phase [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run()
		w.succeeds("a")
		w.forget("a")
		w.fake.On(contract.ActionReconcile, landscapertest.Wait("the weather", 50*time.Millisecond), landscapertest.Phase(phases.Progressing))
		w.on(extension.ShouldReconcileHook, once(landscapertest.Returns(goOn(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		Eventually(func() []contract.Action { return w.calls("a") }).Should(HaveLen(4))
		w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			cond := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
			return cond != nil && cond.Status == lsv1alpha1.ConditionFalse
		})
		w.keepsItsJob("a")
	})

	It("a new job replaces a background run [L46]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll()
		w.run()
		w.succeeds("a")
		w.fake.On(contract.ActionReconcile, landscapertest.Wait("something", time.Hour))
		w.on(extension.ShouldReconcileHook, once(landscapertest.Returns(goOn(), nil)))
		w.fake.Runtime().Trigger(w.key("a"))
		w.until("a", func(di *lsv1alpha1.DeployItem) bool {
			return contract.GetCondition(di.Status.Conditions, contract.ConditionBackground) != nil
		})
		id := w.job("a")
		di := w.finished("a")
		Expect(di.Status.JobIDFinished).To(Equal(id))
		Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)).To(BeNil())
	})

	It("a background run does not start before a new spec, a deletion or the first job is processed [L25, L46]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.ShouldReconcileHook, landscapertest.Returns(goOn(), nil))
		w.create("never")
		stop := w.run()
		Eventually(func() int { return w.count(extension.ShouldReconcileHook) }).Should(BeNumerically(">", 0))
		Consistently(func() []contract.Action { return w.calls("never") }).Should(BeEmpty())
		stop.Stop()

		w.on(extension.ShouldReconcileHook, nil)
		w.run()
		w.succeeds("a")
		w.succeeds("b")
		w.on(extension.ShouldReconcileHook, landscapertest.Returns(goOn(), nil))
		w.update("a", withConfig("new"))
		w.markDeleted("b")
		Consistently(func() int { return len(w.calls("a")) + len(w.calls("b")) }).Should(Equal(2))
		w.on(extension.ShouldReconcileHook, nil)
		w.job("a")
		w.eventuallyCalls("a", contract.ActionReconcile, contract.ActionReconcile)
		w.job("b")
		w.eventuallyCalls("b", contract.ActionReconcile, contract.ActionDelete)
	})
})
