// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

// waitForReason waits until the condition of an item shows the given reason for waiting.
func (w *env) waitForReason(ctx context.Context, name, reason string) {
	GinkgoHelper()
	Eventually(w.item(ctx, name)).WithTimeout(patience).Should(WithTransform(getWaitingReason, ContainSubstring(reason)))
}

// namespace creates another namespace, which the examples call demo-NAME.
func (w *env) namespace(ctx context.Context, name string) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}}
	Expect(w.Client.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

var _ = Describe("Examples of readiness checks", func() {
	It("disableDefault switches off the default check [D12]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "not-checked")
		w.remove(ctx, "not-checked")
	}, SpecTimeout(5*time.Minute))

	It("the status and the timeout error name the object that is not ready, and other items run meanwhile [D12, H-24]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.createExample(ctx, "readiness-timeout")
		reason := "Service " + w.Namespace + "/readiness-timeout: the load balancer has no address yet"
		w.waitForReason(ctx, "readiness-timeout", reason)
		Eventually(w.item(ctx, "readiness-timeout")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Failed))
		last := w.item(ctx, "readiness-timeout")(NewGomega(Fail)).Status.LastError
		Expect(last.Message).To(And(ContainSubstring("not done within 2s"), ContainSubstring(reason)))
		Expect(last.Reason).To(Equal(lsv1alpha1.ProgressingTimeoutReason))
		Expect(last.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
	}, SpecTimeout(5*time.Minute))

	It("custom checks read fields of objects, also of objects that the item does not own [D13]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.createExample(ctx, "custom-checks")
		w.waitForReason(ctx, "custom-checks", `check "database is up": ConfigMap `+w.Namespace+`/database: .data.phase does not exist`)
		w.UpdateConfigMap(ctx, "database", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"phase": "Down"} })
		w.waitForReason(ctx, "custom-checks", `.data.phase is "Down", want ["Up" "Idle"]`)
		w.UpdateConfigMap(ctx, "database", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"phase": "Up", "error": "x"} })
		w.waitForReason(ctx, "custom-checks", ".data.error exists")
		w.UpdateConfigMap(ctx, "database", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"phase": "Up"} })
		w.waitForReason(ctx, "custom-checks", `check "all shards are open": no ConfigMap has the labels shard-of=`+w.Namespace+"-database")

		shard := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(ctx, "shards"), Name: "one"}}
		shard.Labels, shard.Data = map[string]string{"shard-of": w.Namespace + "-database"}, map[string]string{"state": "open"}
		Expect(w.Client.Create(ctx, shard)).To(Succeed())
		Expect(w.Finished(ctx, "custom-checks").Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(8*time.Minute))

	It("custom checks support all operators [D13]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "operators")
	}, SpecTimeout(5*time.Minute))

	It("custom checks read objects of another target [D13]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateTarget(ctx, "second", cp.Kubeconfig())
		w.createExample(ctx, "check-elsewhere")
		w.waitForReason(ctx, "check-elsewhere", `check "gate is open": ConfigMap `+w.Namespace+"-second/gate: does not exist")
		w.createGate(ctx)
		Expect(w.Finished(ctx, "check-elsewhere").Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))

	It("an item that waits does not occupy the only worker [H-24]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.workers = 1
		w.start()
		for _, name := range []string{"custom-checks", "check-elsewhere"} {
			di := w.readExample(name)
			di.Spec.Target.Name = "cluster"
			Expect(w.Landscaper.Deploy(ctx, di)).To(Succeed())
		}
		w.waitForReason(ctx, "custom-checks", "does not exist")
		before := time.Now()
		w.runSuccessfully(ctx, "operators")
		Expect(time.Since(before)).To(BeNumerically("<", testtime.ScaleTimeout(5*time.Second)))
		Expect(w.item(ctx, "custom-checks")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Progressing))
	}, SpecTimeout(5*time.Minute))
})

// createGate creates the object that two examples check in another target.
func (w *env) createGate(ctx context.Context) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(ctx, "second"), Name: "gate"}, Data: map[string]string{"open": "yes"}}
	Expect(w.Client.Create(ctx, cm)).To(Succeed())
}
