// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// shortGrace sets a short grace period for calls that ignore their context.
func shortGrace(args *deployerlib.DeployerArgs) { args.GracePeriod = 200 * time.Millisecond }

var _ = registerSpecs("Misbehaving code", func(e *cluster) {
	It("a hook that changes the spec is refused, and its other invalid changes are dropped", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.BeforeReconcileHook,
			func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
				di.Spec.Context = "changed"
				di.Status.Phase, di.Status.JobIDFinished = phases.Succeeded, di.Status.JobID
				di.Finalizers = nil
				return nil, nil
			})
		w.run()
		w.createAndStart("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring("spec.context"))
		Expect(di.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		Expect(di.Status.Phase).NotTo(Equal(phases.Succeeded))
		Expect(w.listCalls("a")).To(BeEmpty())
	})

	It("a panic of a hook becomes an error of the item [Lx10]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.BeforeReconcileHook, runOnce(
			func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
				panic("no pod")
			}))
		w.run()
		w.runSuccessfully("a")
		Expect(w.listVersions("a")).To(ContainElement(Satisfy(func(di *lsv1alpha1.DeployItem) bool {
			return di.Status.LastError != nil && strings.Contains(di.Status.LastError.Message, "BeforeReconcile")
		})))
	})

	It("a hook that does not return ends with the run at its timeout [C10]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.BeforeReconcileHook,
			func(ctx context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		w.run()
		w.createAndStart("a", withTimeout(4*time.Second))
		di := w.finished("a")
		Expect(di.Status.LastError.Reason).To(Equal(lsv1alpha1.ProgressingTimeoutReason))
		Expect(w.listCalls("a")).To(BeEmpty())
	})

	DescribeTable("a call that ignores its cancellation is abandoned, and no other call runs beside it",
		func(ctx SpecContext, cancel func(*env)) {
			w := e.begin(ctx)
			release := make(chan struct{})
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
			w.run(shortGrace)
			w.createAndStart("a", withTimeout(8*time.Second))
			w.waitForCall("a", contract.ActionReconcile, 1)
			cancel(w)
			di := w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Reason).To(Equal("CancellationIgnored"))
			w.startJob("a")
			Consistently(func() []contract.Action { return w.listCalls("a") }).Should(HaveLen(1))
			close(release)
			Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
			Expect(w.fake.CountCalls(w.key("a"), contract.ActionReconcile)).To(Equal(2))
		},
		Entry("the call exceeds its timeout", world.Slow, func(*env) {}),
		Entry("the run is aborted", func(w *env) { w.setOperation("a", contract.AbortOperation) }),
	)

	It("repeated failures with the same message create one event", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errTrouble), landscapertest.ReturnError(errTrouble), landscapertest.ReturnError(errTrouble))
		w.run()
		w.runSuccessfully("a")
		list := &eventsv1.EventList{}
		Eventually(func(g Gomega) {
			g.Expect(w.client.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
			g.Expect(list.Items).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Type).To(Equal(corev1.EventTypeWarning))
		Expect(list.Items[0].Note).To(ContainSubstring("trouble"))
		Expect(list.Items[0].Regarding.Name).To(Equal("a"))
	})
})

var _ = registerSpecs("Support for deployers", func(e *cluster) {
	It("Resume is called once per process for each finished item, and writes nothing", func(ctx SpecContext) {
		w := e.begin(ctx)
		first := w.run()
		w.runSuccessfully("a")
		first.Stop()
		args := w.args()
		args.Deployer = landscapertest.Resuming{Fake: w.fake}
		w.fake.QueueAnswers(landscapertest.ActionResume, landscapertest.ReturnError(errTrouble))
		w.start(args)
		w.waitForCalls("a", contract.ActionReconcile, landscapertest.ActionResume, landscapertest.ActionResume)
		w.fake.Runtime().Trigger(w.key("a"))
		w.expectUnchanged("a")
		Expect(w.listCalls("a")).To(HaveLen(3))
		Expect(w.get("a").Status.LastError).To(BeNil())
	})

	It("an export Secret belongs to its item, and never replaces a Secret of another owner", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			return deployerlib.WriteExport(ctx, w.client, in.Item, map[string]any{"url": "https://example.com"})
		})
		w.run()
		di := w.runSuccessfully("a")
		Expect(di.Status.ExportReference).NotTo(BeNil())
		secret := &corev1.Secret{}
		Expect(w.client.Get(ctx, w.key(di.Status.ExportReference.Name), secret)).To(Succeed())
		Expect(secret.Data).To(HaveKeyWithValue(lsv1alpha1.DataObjectSecretDataKey, ContainSubstring("https://example.com")))
		Expect(metav1.IsControlledBy(secret, di) || secret.OwnerReferences[0].UID == di.UID).To(BeTrue())

		taken := &corev1.Secret{ObjectMeta: w.meta("b-export"), StringData: map[string]string{"mine": "yes"}}
		Expect(w.client.Create(ctx, taken)).To(Succeed())
		w.createAndStart("b")
		Expect(getErrorCodes(w.finished("b"))).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(w.client.Get(ctx, w.key("b-export"), secret)).To(Succeed())
		Expect(secret.Data).To(HaveLen(1))
	})

	if e.hasJobs() {
		It("a job runs once although the clock of Landscaper is ahead [C5, C14]", func(ctx SpecContext) {
			w := e.begin(ctx)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing))
			w.run()
			w.create("a")
			ahead := metav1.NewTime(time.Now().Add(10 * time.Minute).Truncate(time.Second))
			w.updateStatus("a", func(di *lsv1alpha1.DeployItem) { di.Status.JobID, di.Status.JobIDGenerationTime = "ahead", &ahead })
			di := w.finished("a")
			Expect(di.Status.LastReconcileTime.Before(di.Status.JobIDGenerationTime)).To(BeFalse(), "Landscaper must see it as picked up")
			Expect(w.listCalls("a")).To(HaveLen(2))
			Expect(w.listPhases("a")).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.Succeeded}))
		})
	}
})
