// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// meta returns the metadata of an object in the namespace of a spec.
func (w *env) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name}
}

// createTargetWithSecret creates a Target whose configuration is in a Secret.
func (w *env) createTargetWithSecret(name, secret string) {
	GinkgoHelper()
	Expect(w.client.Create(w.ctx, &lsv1alpha1.Target{ObjectMeta: w.meta(name), Spec: lsv1alpha1.TargetSpec{
		Type:      "flow.deployerkit.dev/target",
		SecretRef: &lsv1alpha1.LocalSecretReference{Name: secret, Key: "config"},
	}})).To(Succeed())
}

var _ = registerSpecs("References of an item", func(e *cluster) {
	DescribeTable("a run reports a missing object, and continues when the object exists [Lx9, C5]",
		func(ctx SpecContext, m itemOption, message string, make func(*env)) {
			w := e.begin(ctx)
			var called *lsv1alpha1.DeployItem
			w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				called = w.get("a")
				return nil
			})
			w.run(setSlowBackoff) // the backoff is so long that only the watch can trigger the item
			w.createAndStart("a", m)
			di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
			Expect(di.Status.LastError.Message).To(ContainSubstring(message))
			Expect(di.Status.Phase).To(Equal(phases.Init))
			Expect(di.Status.LastReconcileTime).NotTo(BeNil(), "picked up")
			Expect(contract.WasNeverDeployed(di)).To(BeTrue())
			w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
			Expect(w.listCalls("a")).To(BeEmpty())
			make(w)
			di = w.finished("a")
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(di.Status.LastError).To(BeNil())
			Expect(contract.WasNeverDeployed(called)).To(BeFalse(), "known before the deployer does anything")
			Expect(w.listCalls("a")).To(HaveLen(1))
		},
		Entry("the object is a Target", withTarget("later"), `target "later" not found`, func(w *env) { w.createTarget("later", nil) }),
		Entry("the object is a Context", withContext("later"), `context "later" not found`, func(w *env) { w.context("later") }),
	)

	It("a run with a missing Secret is repeated until the Secret exists [Lx9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.createTargetWithSecret("dev", "later")
		w.run()
		w.createAndStart("a", withTarget("dev"))
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring("later"))
		Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse())
		Expect(w.client.Create(ctx, &corev1.Secret{ObjectMeta: w.meta("later"), StringData: map[string]string{"config": "{}"}})).To(Succeed())
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.fake.ListCalls(w.key("a"))[0].HasTarget).To(BeTrue())
	})

	It("a changed Target triggers its item [Lx9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.createTargetWithSecret("dev", "missing")
		w.run(setSlowBackoff)
		w.createAndStart("a", withTarget("dev"))
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		target := &lsv1alpha1.Target{}
		Expect(w.client.Get(ctx, w.key("dev"), target)).To(Succeed())
		target.Spec.SecretRef, target.Spec.Configuration = nil, lsv1alpha1.NewAnyJSONPointer([]byte(`{}`))
		Expect(w.client.Update(ctx, target)).To(Succeed())
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	DescribeTable("an item that was never deployed is deleted although it refers to missing objects [C13, Lx9]",
		func(ctx SpecContext, m itemOption) {
			w := e.begin(ctx)
			w.run()
			w.createAndStart("a", m, withFinalizer)
			w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
			w.delete("a")
			w.waitUntilDeleted("a")
			Expect(w.listCalls("a")).To(BeEmpty())
		},
		Entry("the Target does not exist", withTarget("never")),
		Entry("the Context does not exist", withContext("never")),
		Entry("the item has no configuration", func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil }),
	)

	It("an item with a finalizer that no deployer has processed is deleted [C13]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.create("a", withTarget("never"), withFinalizer)
		w.delete("a")
		w.run()
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(BeEmpty())
	})

	It("a deployed item is not deleted while its Target is missing [C13, Lx9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		target := w.createTarget("dev", nil)
		w.run(setSlowBackoff)
		w.runSuccessfully("a", withTarget("dev"))
		Expect(w.client.Delete(ctx, target)).To(Succeed())
		w.delete("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring(`target "dev" not found`))
		Expect(di.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		w.createTarget("dev", nil)
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	It("a deletion whose Target stays missing fails long before its timeout [F63]", func(ctx SpecContext) {
		w := e.begin(ctx)
		target := w.createTarget("dev", nil)
		w.run(setSlowBackoff, func(args *deployerlib.DeployerArgs) { args.MissingTargetGrace = 3 * time.Second })
		w.runSuccessfully("a", withTarget("dev"))
		Expect(w.client.Delete(ctx, target)).To(Succeed())
		w.delete("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring(`target "dev" not found`))
		Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse(), "the Target may come back")
		di = w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return contract.IsFinal(di.Status.Phase) })
		Expect(di.Status.Phase).To(Equal(contract.FailedPhase(e.revision, true)))
		Expect(di.Status.LastError.Message).To(ContainSubstring(`target "dev" not found`))
		Expect(getErrorCodes(di)).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(di.Finalizers).To(ContainElement(lsv1alpha1.LandscaperFinalizer))
		Expect(w.fake.CountCalls(w.key("a"), contract.ActionDelete)).To(BeZero())

		w.createTarget("dev", nil)
		w.startJob("a")
		w.waitUntilDeleted("a")
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile, contract.ActionDelete}))
	})

	It("an aborted run keeps the last known reason in its error [F64]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnWaitFor("Deployment.apps a/b: is not ready", time.Hour))
		w.run()
		w.createAndStart("a")
		w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool {
			return contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting) != nil
		})
		w.setOperation("a", contract.AbortOperation)
		Expect(w.finished("a").Status.LastError.Message).To(Equal("the run was aborted; last error: Deployment.apps a/b: is not ready"))
	})

	It("an abort does not need the Target and the Context [C4]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.createTarget("dev", nil)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.run()
		w.createAndStart("a", withTarget("dev"))
		w.waitForCall("a", contract.ActionReconcile, 1)
		Expect(w.client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: w.meta("dev")})).To(Succeed())
		Expect(w.client.Delete(ctx, &lsv1alpha1.Context{ObjectMeta: w.meta(lsv1alpha1.DefaultContextName)})).To(Succeed())
		w.setOperation("a", contract.AbortOperation)
		Expect(w.finished("a").Status.LastError.Reason).To(Equal(contract.AbortedReason))
	})

	It("a job without a configuration fails with a configuration problem", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.run()
		w.createAndStart("a", func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil })
		di := w.finished("a")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal("ProviderConfigurationMissing"))
		Expect(getErrorCodes(di)).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(w.listCalls("a")).To(BeEmpty())
	})
})
