// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// The function `on` returns a function that sets the Target to which an item refers.
func on(name, namespace string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name, Namespace: namespace}
	}
}

var _ = Describe("a reference", func() {
	for _, revision := range both {
		It(title("to an unknown target shows an error and is healed by the target [Lx9]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			// The backoff is so long that only the event can trigger the next reconcile.
			w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
			w.start()
			key := w.deploy(ctx, "item", on("late", w.Namespace))
			di := w.failing(ctx, key)
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring(`target "late" not found`))
			Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse())
			Expect(di.Status.LastReconcileTime).NotTo(BeNil(), "the job was picked up")
			Expect(w.fake.Calls(key)).To(BeEmpty())
			w.target(ctx, "late")
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(title("to a missing Context shows an error and is healed by the Context", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
			w.start()
			key := w.deploy(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "late" })
			di := w.failing(ctx, key)
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring(`context "late" not found`))
			lsCtx := &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "late"}}
			Expect(w.Client.Create(ctx, lsCtx)).To(Succeed())
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(title("that is missing does not hold up the deletion of what was never deployed [decision 13]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			key := w.deploy(ctx, "item", on("never", w.Namespace))
			w.failing(ctx, key)
			Expect(w.Landscaper.Delete(within(ctx, patience), key)).To(Succeed())
			Expect(w.fake.Calls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It(title("to the target of another namespace is a configuration problem", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.target(ctx, "here")
			w.start()
			key := w.deploy(ctx, "item", on("here", "kube-system"))
			refused(w.finished(ctx, key), "spec.target.namespace")
			Expect(w.fake.Calls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))
	}

	It("by selector with an invalid operator is an error at the start [D5]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args.TargetSelectors = []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "a", Operator: selection.Operator("resembles"), Values: []string{"b"}}}}}
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		err = deployerlib.Add(logr.Discard(), mgr, nil, w.args)
		Expect(err).To(MatchError(And(ContainSubstring("resembles"), ContainSubstring("labels[0]"))))
	}, SpecTimeout(5*time.Minute))
})
