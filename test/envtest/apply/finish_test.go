// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Finished Jobs", func() {
	It("runs a finished Job again only if its manifest changes or the item is forced [F91]", func(ctx SpecContext) {
		w := newEnv(ctx)
		job := func(image string) apply.Desired {
			return w.manifest("batch/v1", "Job", "migrate", map[string]any{"spec": map[string]any{
				"ttlSecondsAfterFinished": int64(0), "template": map[string]any{"spec": map[string]any{
					"restartPolicy": "Never", "containers": []any{map[string]any{"name": "a", "image": image}},
				}},
			}})
		}
		runs := func(wanted bool) {
			GinkgoHelper()
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
			err := direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "migrate"}, live)
			if !wanted {
				Expect(client.IgnoreNotFound(err)).To(Succeed())
				Expect(err).To(HaveOccurred(), "the Job runs again")
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(direct.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		}
		w.apply(ctx, job("a"))
		runs(true)
		w.apply(ctx, job("a"))
		runs(false)
		Expect(w.recordRequests(func() { w.apply(ctx, job("a")) }).Sum()).To(BeZero())
		w.options.Force = true
		w.apply(ctx, job("a"))
		runs(false)
		w.options.RecreateFinished = true
		w.apply(ctx, job("a"))
		runs(true)
		w.options.Force, w.options.RecreateFinished = false, false
		w.apply(ctx, job("a"))
		runs(false)
		w.apply(ctx, job("b"))
		runs(true)
		w.delete(ctx)
		Expect(w.stored.Entries).To(BeEmpty())
	})
})
