// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Admission", func() {
	It("ignores containers that an admission policy adds to a child [R39, R40, R41]", func(ctx SpecContext) {
		w := newEnv(ctx, podKind)
		w.createSidecarPolicy(ctx)
		pod := object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web"},
			"spec": object{"containers": []any{object{"name": "web", "image": "web:1"}}, "terminationGracePeriodSeconds": 0},
		}
		l := runItem(ctx, w, pod)
		got := getChild(ctx, l, "web", &corev1.Pod{})
		Expect(got.Spec.Containers).To(HaveLen(3))
		Expect(got.Spec.InitContainers).To(HaveLen(1))
		l.expectNoRequests(ctx)
		Expect(getChild(ctx, l, "web", &corev1.Pod{}).UID).To(Equal(got.UID))

		By("changing the container of the handler")
		pod["spec"].(object)["containers"] = []any{object{"name": "web", "image": "web:2"}}
		l.setChildren(ctx, pod)
		now := getChild(ctx, l, "web", &corev1.Pod{})
		Expect(now.UID).To(Equal(got.UID))
		images := map[string]string{}
		for _, container := range append(now.Spec.Containers, now.Spec.InitContainers...) {
			images[container.Name] = container.Image
		}
		Expect(images).To(Equal(map[string]string{"web": "web:2", "sidecar": "sidecar:1", "logs": "logs:1", "init": "init:1"}))
		l.expectNoRequests(ctx)
	}, SpecTimeout(5*time.Minute))

	for _, strategy := range []declarative.UpdateStrategy{declarative.StrategyApply, declarative.StrategyReplace, declarative.StrategyRecreate} {
		It("writes a child once although an admission policy replaces a value in this write ("+string(strategy)+") [F24]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, withStrategy(strategy))
			w.RewriteKeys(ctx)
			w.start(declarative.HandlerFunc(handleWithCounts))
			Expect(w.CreateAndRun(ctx, "item", config(map[string]data{"a": {"key": "1"}})).Status.Phase).To(Equal(phases.Succeeded))
			writes := func() int { _, writes := w.GetRequestCounts(nil); return writes }
			Consistently(writes).WithTimeout(2*time.Second).Should(Equal(1), func() string { return w.Counter.Snapshot().String() })
			Expect(w.Read(ctx, "a").Data).To(HaveKeyWithValue("key", "rewritten"))

			By("writing as another client")
			w.setForeignField(ctx, "a", "theirs") // the policy also replaces the value in this write
			Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", HaveKey("a")))
			Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
			w.WaitUntilQuiet(ctx)
			corrected := writes()
			Expect(corrected).To(BeNumerically("<=", 3), "requests: %s", w.Counter.Snapshot())
			Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
			Consistently(writes).WithTimeout(2*time.Second).Should(Equal(corrected), func() string { return w.Counter.Snapshot().String() })
			Expect(w.Condition(ctx, "item", managed.ConditionContested)(NewWithT(GinkgoTB()))).To(BeNil())
		}, SpecTimeout(5*time.Minute))
	}
})

// createSidecarPolicy installs a mutating policy for the namespace. The policy adds two containers and an init
// container to each Pod that is created there.
func (w *env) createSidecarPolicy(ctx context.Context) {
	GinkgoHelper()
	w.Mutate(ctx, "pods", `Object{spec: Object.spec{
		containers: [Object.spec.containers{name: "sidecar", image: "sidecar:1"}, Object.spec.containers{name: "logs", image: "logs:1"}],
		initContainers: [Object.spec.initContainers{name: "init", image: "init:1"}]}}`, "CREATE")
	Eventually(func(g Gomega) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "probe-"}}
		probe.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
		g.Expect(w.Client.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Spec.InitContainers).To(HaveLen(1))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}
