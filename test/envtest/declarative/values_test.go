// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"crypto/rand"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

// handlePassword is a handler that returns a Secret whose value is generated once.
func handlePassword(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	secret, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", "secret")
	if err != nil {
		return nil, err
	}
	value, err := declarative.ValueOr(string(secret.Data["password"]), func() (string, error) { return rand.Text(), nil })
	if err != nil {
		return nil, err
	}
	child := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "secret"}, "stringData": object{"password": value}}
	return declarative.NewBuilder(nil).Add(child).Build()
}

var _ = Describe("Generated values", func() {
	It("keeps a generated value across immediate jobs, a label removed while the deployer is down, and a new item [R34]", func(ctx SpecContext) {
		w := newEnv(ctx, secretKind)
		w.options.OrphanChildren = true
		w.start(declarative.HandlerFunc(handlePassword))
		w.CreateAndRun(ctx, "item", config(nil))
		secret := &corev1.Secret{}
		Expect(w.Client.Get(ctx, w.Key("secret"), secret)).To(Succeed())
		first := string(secret.Data["password"])
		Expect(first).NotTo(BeEmpty())
		for range 5 {
			w.RunAgain(ctx, "item")
		}
		w.Manager.Stop()
		Expect(w.Client.Get(ctx, w.Key("secret"), secret)).To(Succeed())
		secret.Labels, secret.Annotations = nil, nil
		Expect(w.Client.Update(ctx, secret, client.FieldOwner("kubectl-edit"))).To(Succeed())
		w.start(declarative.HandlerFunc(handlePassword))
		Eventually(func(g Gomega) {
			g.Expect(w.Client.Get(ctx, w.Key("secret"), secret)).To(Succeed())
			g.Expect(secret.Labels).To(HaveKey(ownership.LabelItem))
		}).WithTimeout(patience).Should(Succeed())
		w.WaitUntilQuiet(ctx)
		w.RunAgain(ctx, "item")
		w.Delete(ctx, "item")
		w.CreateAndRun(ctx, "item", config(nil))
		w.RunAgain(ctx, "item")
		Expect(w.Client.Get(ctx, w.Key("secret"), secret)).To(Succeed())
		Expect(string(secret.Data["password"])).To(Equal(first))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Status of children", func() {
	It("calls the handler when the status of a child changes, during a job and after it [R7, R8]", func(ctx SpecContext) {
		pod := object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web"},
			"spec": object{"containers": []any{object{"name": "web", "image": "web:1"}}, "terminationGracePeriodSeconds": 0},
		}
		w := newEnv(ctx, podKind).start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			live, _, err := declarative.Find[corev1.Pod](req.Children, "Pod", "web")
			response := declarative.NewBuilder(object{"phase": live.Status.Phase}).Add(pod)
			if live.Status.Phase != corev1.PodRunning {
				response.Wait("web is %s", live.Status.Phase)
			}
			answer, buildErr := response.Build()
			if err == nil {
				err = buildErr
			}
			return answer, err
		}))
		w.Create(ctx, "item", config(nil))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("phase", "Pending"))
		w.setWebPodPhase(ctx, corev1.PodRunning)
		Eventually(func() any { return w.Get(ctx, "item").Status.Phase }).WithTimeout(testtime.ScaleTimeout(5 * time.Second)).Should(Equal(phases.Succeeded))
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.setWebPodPhase(ctx, corev1.PodFailed)
		Eventually(w.status(ctx, "item")).WithTimeout(testtime.ScaleTimeout(5 * time.Second)).Should(HaveKeyWithValue("phase", "Failed"))
		Expect(w.Get(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))
})

// setWebPodPhase sets the phase of the Pod, as a kubelet does.
func (w *env) setWebPodPhase(ctx context.Context, phase corev1.PodPhase) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(w.Client.Get(ctx, w.Key("web"), pod)).To(Succeed())
	pod.Status.Phase = phase
	Expect(w.Client.Status().Update(ctx, pod, client.FieldOwner("kubelet"))).To(Succeed())
}
