// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// storeStatus writes the given fields to the status of an item, although only deployers and Landscaper should write
// them.
func (w *env) storeStatus(ctx SpecContext, key types.NamespacedName, status map[string]any) {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{"status": status})
	Expect(err).NotTo(HaveOccurred())
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = key.Namespace, key.Name
	Expect(w.Client.Status().Patch(ctx, di, client.RawPatch(types.MergePatchType, raw))).To(Succeed())
}

var _ = Describe("Unusual items", func() {
	It("an item without a status and without a job is left alone [L25]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args.Revision = contract.RevisionJobID
		w.start()
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.Create(ctx, w.item("item"))).To(Succeed())
		w.expectRequests(before, 0, 0)
	}, SpecTimeout(5*time.Minute))

	It("an item without a status that a user created is deployed [C7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation).start()
		Expect(w.Client.Create(ctx, w.item("item"))).To(Succeed())
		Expect(w.finished(ctx, w.Key("item")).Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))

	for _, revision := range both {
		DescribeTable(addRevision("an item in an invalid state is run to its end", revision), func(ctx SpecContext, phase string) {
			w := newEnv(ctx, revision)
			Expect(w.Landscaper.Create(ctx, w.item("item"))).To(Succeed())
			key := w.Key("item")
			w.storeStatus(ctx, key, map[string]any{"phase": phase, "observedGeneration": 1})
			Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, key)).To(Succeed())
			w.start()
			di := w.finished(ctx, key)
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(di.Status.LastReconcileTime).NotTo(BeNil())
			Expect(w.fake.ListCalls(key)).To(HaveLen(1))
			Expect(w.fake.ListCalls(key)[0].InitialPhase).To(Equal(phases.Init))
		},
			Entry("the phase is unknown", "Dancing"),
			Entry("the phase is Progressing, and lastReconcileTime is not set", "Progressing"),
			Entry("the phase is Init, and lastReconcileTime is not set", "Init"),
		)

		It(addRevision("an item with a foreign finalizer is deleted once and then left alone [C13]", revision), func(ctx SpecContext) {
			const foreign = "example.com/foreign"
			w := newEnv(ctx, revision).start()
			key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Finalizers = append(di.Finalizers, foreign) })
			w.finished(ctx, key)
			Expect(w.Landscaper.MarkForDeletion(ctx, key)).To(Succeed())
			Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, key)).To(Succeed())
			w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return !contract.HasLandscaperFinalizer(di) })
			before := w.Counter.Snapshot()
			Expect(w.Landscaper.SetOperation(ctx, key, lsv1alpha1.ReconcileOperation)).To(Succeed())
			w.expectRequests(before, 0, 0)
			Expect(w.fake.CountCalls(key, contract.ActionDelete)).To(Equal(1))
			Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{lsv1alpha1.OperationAnnotation: ""})).To(Succeed())
			di, err := w.Landscaper.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Finalizers).To(ConsistOf(foreign))
			di.Finalizers = nil
			Expect(w.Client.Update(ctx, di)).To(Succeed())
			Expect(w.Landscaper.WaitForDeletion(withTimeout(ctx, patience), key)).To(Succeed())
		}, SpecTimeout(5*time.Minute))
	}
})
