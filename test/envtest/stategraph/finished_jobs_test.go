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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// newMigrationJob returns a Job that is deleted as soon as it has finished.
func newMigrationJob(namespace string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "migrate"},
		Spec: batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(0)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "registry.example.com/migrate:v1"}},
		}}},
	}
}

// listJobs returns a function for Eventually that lists the Jobs of the spec.
func (w *env) listJobs(ctx context.Context) func(Gomega) []batchv1.Job {
	return func(g Gomega) []batchv1.Job {
		list := &batchv1.JobList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		return list.Items
	}
}

// completePod waits until the stand-in for the kubelet has started the only Pod of the spec, and lets the Pod succeed.
func (w *env) completePod(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(w.Client.List(ctx, pods, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
		pod := &pods.Items[0]
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), "the stand-in for the kubelet has not started the Pod yet")
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		g.Expect(w.Client.Status().Update(ctx, pod)).To(Succeed())
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("Finished Jobs", func() {
	It("runs a Job that is deleted after it has finished only once, also after a restart [F91]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		start := func() {
			w.start(build(stategraph.NewBuilder().
				Add("migrate", stategraph.Object(func(context.Context) (*batchv1.Job, error) { return newMigrationJob(w.Namespace), nil })).
				Add("behind", newConfigMap("behind"), "migrate")))
		}
		start()
		w.begin(ctx, "item", settings{Value: "a"})
		w.completePod(ctx)
		Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.listJobs(ctx)).WithTimeout(patience).Should(BeEmpty())
		for range 2 {
			Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
			w.Manager.Stop()
			start()
			Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		}
		Consistently(w.listJobs(ctx)).WithTimeout(20 * time.Second).Should(BeEmpty()) // another run would not end, because its Pod is not ended
		Expect(w.ReadItem(ctx, "item")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))
})
