// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/examples/postgres"
)

// completeJob waits for a Job, makes its Pods complete, and returns the UID of the Job. It ignores an earlier Job with
// the UID not.
func (w *env) completeJob(ctx context.Context, name string, not types.UID) types.UID {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(func(g Gomega) {
		g.Expect(w.Client.Get(ctx, w.Key(name), job)).To(Succeed())
		g.Expect(job.UID).NotTo(Equal(not))
		pods := &corev1.PodList{}
		g.Expect(w.Client.List(ctx, pods, client.InNamespace(w.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)})).To(Succeed())
		g.Expect(pods.Items).NotTo(BeEmpty())
		for i := range pods.Items {
			pod := &pods.Items[i]
			g.Expect(pod.Status.Phase).NotTo(Equal(corev1.PodPending), "the kubelet comes first")
			pod.Status.Phase = corev1.PodSucceeded
			g.Expect(w.Client.Status().Update(ctx, pod)).To(Succeed())
		}
	}).WithTimeout(patience).Should(Succeed())
	return job.UID
}

var _ = Describe("Postgres example", func() {
	It("waits for the issuer, creates the users, exports the connection, and runs the Job again for other users [F34, F36, F41, F42]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		g, err := postgres.BuildGraph()
		Expect(err).NotTo(HaveOccurred())
		w.start(g)
		config := postgres.Config{Namespace: w.Namespace, Image: "example.com/none:1", Issuer: "issuer", Users: []string{"orders"}}
		w.begin(ctx, "pg", config)
		Eventually(w.getStates(ctx, "pg")).WithTimeout(patience).Should(Equal(map[string]string{
			"issuer": "Progressing", "certificate": "Blocked", "configuration": "Blocked", "database": "Blocked", "service": "Blocked", "users": "Blocked",
		}))
		Expect(w.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "issuer"}, Data: map[string]string{"class": "internal"},
		})).To(Succeed())

		By("letting the issuer respond")
		request := &corev1.Secret{}
		Eventually(func() error { return w.Client.Get(ctx, w.Key("pg-tls"), request) }).WithTimeout(patience).Should(Succeed())
		Expect(request.Annotations).To(HaveKeyWithValue("example.org/issuer-class", "internal"))
		answer := mergePatch(map[string]any{"data": map[string][]byte{corev1.TLSCertKey: []byte("pem"), corev1.TLSPrivateKeyKey: []byte("pem")}})
		Expect(w.Client.Patch(ctx, request, answer, client.FieldOwner("issuer"))).To(Succeed())

		By("letting the Job create the users")
		first := w.completeJob(ctx, "pg-users", "")
		w.waitUntilSucceeded(ctx, "pg")
		Expect(w.readExports(ctx, "pg")(NewGomega(Fail))).To(Equal(map[string]any{
			"host": "pg." + w.Namespace + ".svc", "port": float64(5432), "secretRef": "pg-tls",
		}))

		By("changing the users")
		config.Users = append(config.Users, "reports")
		w.beginUpdate(ctx, "pg", config)
		w.completeJob(ctx, "pg-users", first)
		w.waitUntilSucceeded(ctx, "pg")

		By("requesting users that are not allowed, which changes nothing")
		config.Users = []string{"O'Hara"}
		w.beginUpdate(ctx, "pg", config)
		Expect(w.Finished(ctx, "pg").Status.LastError.Message).To(ContainSubstring("spec.config.users[0]"))
		w.Delete(ctx, "pg")
	}, SpecTimeout(8*time.Minute))
})
