// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// script determines what a hook does for the item "bad". For other items, the hook does nothing.
type script func(ctx context.Context, di *lsv1alpha1.DeployItem) (*extension.HookResult, error)

// withHook registers a hook that calls the function `do` for the item "bad".
func (w *env) withHook(t extension.HookType, do script) *env {
	w.fake.RegisterHook(func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di == nil || di.Name != "bad" {
			return nil, nil
		}
		return do(ctx, di)
	}, t)
	return w
}

// expectOthersSucceed deploys an item for which the hook does nothing. It requires that this item succeeds.
func (w *env) expectOthersSucceed(ctx context.Context) {
	GinkgoHelper()
	Expect(w.finished(ctx, w.createAndStart(ctx, "good")).Status.Phase).To(Equal(phases.Succeeded))
}

// readMetric reads a metric of the library. It returns 0 if the metric does not exist.
func (w *env) readMetric(name string) float64 {
	GinkgoHelper()
	families, err := w.Manager.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

var _ = Describe("Hooks with faults", func() {
	It("a nil hook and a hook of an unknown type are rejected at the start [L67, Lx2]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.RegisterHook(nil, extension.EndHook).RegisterHook((&landscapertest.Recorder{}).NewHook("a"), "Sometimes")
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		err = deployerlib.Add(logr.Discard(), mgr, nil, w.args)
		Expect(err).To(MatchError(And(ContainSubstring("Sometimes"), ContainSubstring("End"))))
	}, SpecTimeout(5*time.Minute))

	for _, revision := range both {
		It(addRevision("a panic of a hook fails only its item, and the error names the hook [Lx10]", revision), func(ctx SpecContext) {
			var healed atomic.Bool
			w := newEnv(ctx, revision).withHook(extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
				if healed.Load() {
					return nil, nil
				}
				panic("boom\nboom")
			}).start()
			di := w.waitForError(ctx, w.createAndStart(ctx, "bad"))
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(And(ContainSubstring("boom"), ContainSubstring("BeforeReconcile[0]")))
			w.expectOthersSucceed(ctx)
			Expect(w.fake.ListCalls(w.Key("bad"))).To(BeEmpty())
			healed.Store(true)
			Expect(w.finished(ctx, w.Key("bad")).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a change of the spec by a hook is detected, and the error names its path", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision).withHook(extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
				di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(newConfigBody(`"replicas":7`))}
				return nil, nil
			}).start()
			key := w.createAndStart(ctx, "bad")
			di := w.finished(ctx, key)
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorInternalProblem))
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring("spec.config"))
			Expect(string(di.Spec.Configuration.Raw)).To(MatchJSON(config))
			Expect(di.Generation).To(BeEquivalentTo(1))
			Expect(w.fake.ListCalls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It(addRevision("the result of a hook that returns an error is ignored, and the hook is called again [L12]", revision), func(ctx SpecContext) {
			var n atomic.Int64
			w := newEnv(ctx, revision).withHook(extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
				if n.Add(1) > 2 {
					return nil, nil
				}
				return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: time.Hour}}, errors.New("no")
			}).start()
			Expect(w.finished(ctx, w.createAndStart(ctx, "bad")).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a hook that does not return ends at the deadline of the item", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision).withHook(extension.BeforeReconcileHook, func(ctx context.Context, _ *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}).start()
			key := w.createAndStart(ctx, "bad", timeout(time.Second))
			expectTimedOut(w.finished(ctx, key))
			Expect(w.fake.ListCalls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a hook that ignores its context is abandoned, and the worker continues [decision 11]", revision), func(ctx SpecContext) {
			release := make(chan struct{})
			w := newEnv(ctx, revision).withHook(extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
				<-release
				return nil, nil
			})
			w.args.GracePeriod = moment
			w.args.Options.MaxConcurrentReconciles = 1
			w.start()
			key := w.createAndStart(ctx, "bad", timeout(5*time.Second))
			w.expectQuarantined(ctx, key, release)
		}, SpecTimeout(5*time.Minute))
	}

	It("a negative delay of a hook causes no further reconcile [L19]", func(ctx SpecContext) {
		var n atomic.Int64
		w := newEnv(ctx, contract.RevisionJobID).withHook(extension.EndHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
			n.Add(1)
			return &extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: -time.Second}}, nil
		}).start()
		Expect(w.finished(ctx, w.createAndStart(ctx, "bad")).Status.Phase).To(Equal(phases.Succeeded))
		Consistently(n.Load).Should(BeEquivalentTo(1))
	}, SpecTimeout(5*time.Minute))

	It("a hook that always requests an immediate reconcile is slowed down [L20]", func(ctx SpecContext) {
		var n atomic.Int64
		w := newEnv(ctx, contract.RevisionJobID).withHook(extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
			n.Add(1)
			return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{Requeue: true}}, nil
		}).start()
		w.finished(ctx, w.createAndStart(ctx, "bad"))
		Eventually(n.Load).Should(BeNumerically(">=", 9))
		// The first nine reconciles follow each other immediately. The following ones are delayed by 100, 200, 400, 800
		// ms and so on.
		Consistently(n.Load, 1400*time.Millisecond).Should(BeNumerically("<=", 16))
	}, SpecTimeout(5*time.Minute))

	It("a hook that registers hooks during a reconcile has no effect [L64]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.withHook(extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem) (*extension.HookResult, error) {
			w.fake.RegisterHook(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
				return nil, errors.New("came too late")
			}, extension.BeforeReconcileHook, extension.EndHook)
			return nil, nil
		})
		w.start()
		Expect(w.finished(ctx, w.createAndStart(ctx, "bad")).Status.Phase).To(Equal(phases.Succeeded))
		w.expectOthersSucceed(ctx)
	}, SpecTimeout(5*time.Minute))
})

// expectTimedOut requires that an item failed because its run exceeded the deadline.
func expectTimedOut(di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Expect(di.Status.Phase).To(Equal(phases.Failed))
	Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
	oneLine(di.Status.LastError.Message)
}

// expectQuarantined checks an item whose user code hangs. The run of the item must end in the phase Failed. Until the
// user code returns, the only worker must process other items, and no other call for this item may start. After the
// user code has returned, the next job of the item must be processed.
func (w *env) expectQuarantined(ctx context.Context, key types.NamespacedName, release chan struct{}) {
	GinkgoHelper()
	const quarantined = "deployerkit_quarantined_items"
	began := w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Init }).Status.LastReconcileTime
	di := w.finished(ctx, key)
	expectTimedOut(di)
	Expect(di.Status.LastReconcileTime).To(Equal(began), "the run was not started a second time")
	Expect(di.Status.LastError.Message).To(ContainSubstring("did not return after its context was canceled"))
	Expect(w.readMetric(quarantined)).To(BeEquivalentTo(1))
	w.expectOthersSucceed(ctx)
	n := len(w.fake.ListCalls(key))
	w.startJob(ctx, key)
	Consistently(func() int { return len(w.fake.ListCalls(key)) }).Should(Equal(n))
	Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{"still": "here"})).To(Succeed())
	w.fake.SetDefaultAnswer(contract.ActionReconcile, done)
	close(release)
	Eventually(func() float64 { return w.readMetric(quarantined) }).Should(BeEquivalentTo(0))
	w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool {
		return di.Status.JobID == di.Status.JobIDFinished && contract.IsFinal(di.Status.Phase) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
	})
}
