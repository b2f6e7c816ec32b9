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
)

// requestDeletion requests the deletion of an item and does not wait until the item is gone.
func (w *env) requestDeletion(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(w.Landscaper.MarkForDeletion(ctx, w.Key(name))).To(Succeed())
	_, err := w.Landscaper.Trigger(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
}

// waitUntilDeleted waits until an item no longer exists.
func (w *env) waitUntilDeleted(ctx context.Context, name string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(w.Landscaper.WaitForDeletion(ctx, w.Key(name))).To(Succeed())
}

func (w *env) createSecret(ctx context.Context, name string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	Expect(w.Client.Create(ctx, secret)).To(Succeed())
}

var _ = Describe("Examples of deletion groups", func() {
	It("predefined groups delete the objects that their names describe", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "groups-predefined")
		w.remove(ctx, "groups-predefined")
		Expect(w.Read(ctx, "groups-predefined")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("groups that match no object leave all objects, and the item reports this [H-22]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "groups-empty")
		before := w.Read(ctx, "groups-empty").ResourceVersion
		w.remove(ctx, "groups-empty")
		Expect(w.Read(ctx, "groups-empty").ResourceVersion).To(Equal(before))
		Eventually(w.events(ctx, "groups-empty")).WithTimeout(patience).Should(ContainElement(HavePrefix("Left: ConfigMap " + w.Namespace + "/groups-empty is not deleted")))
	}, SpecTimeout(5*time.Minute))

	It("custom groups select objects by kind, name and namespace, and each group waits for the previous one", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "groups-custom")
		w.addFinalizer(ctx, "groups-custom-first")
		w.requestDeletion(ctx, "groups-custom")
		Eventually(w.Data(ctx, "groups-custom-first")).WithTimeout(patience).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Eventually(w.item(ctx, "groups-custom")).WithTimeout(patience).Should(WithTransform(getWaitingReason,
			ContainSubstring("ConfigMap "+w.Namespace+"/groups-custom-first: is being deleted, held by finalizers example.com/held")))
		Expect(w.hasObject(ctx, &corev1.Secret{}, "groups-custom")).To(BeFalse())
		Expect(w.Read(ctx, "groups-custom-second").DeletionTimestamp).To(BeNil())
		w.removeFinalizer(ctx, "groups-custom-first")
		w.waitUntilDeleted(ctx, "groups-custom")
		Expect(w.Read(ctx, "groups-custom-second")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("a group with forceDelete removes finalizers", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "groups-force")
		w.addFinalizer(ctx, "groups-force")
		w.remove(ctx, "groups-force")
		Expect(w.Read(ctx, "groups-force")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("a group with deleteAllResources deletes objects of other owners, also for an item without objects [H-23]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.createSecret(ctx, "made-by-others")
		w.createSecret(ctx, "not-named")
		w.runSuccessfully(ctx, "groups-all")
		w.remove(ctx, "groups-all")
		Expect(w.hasObject(ctx, &corev1.Secret{}, "made-by-others")).To(BeFalse())
		Expect(w.hasObject(ctx, &corev1.Secret{}, "not-named")).To(BeTrue())
	}, SpecTimeout(5*time.Minute))

	It("a group with targetName deletes objects of another target", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateTarget(ctx, "second", cp.Kubeconfig())
		w.createSecret(ctx, "made-by-others")
		w.runSuccessfully(ctx, "groups-target")
		w.remove(ctx, "groups-target")
		Expect(w.hasObject(ctx, &corev1.Secret{}, "made-by-others")).To(BeFalse())
		Expect(w.Read(ctx, "groups-target")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("groups for updates order the deletion of objects that are no longer desired", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "groups-update")
		deleted := w.record("delete")
		config := w.readExample("groups-update").Spec.Configuration
		w.Update(ctx, "groups-update", removeField(config.Raw, "manifests"))
		Expect(deleted()).To(Equal([]string{"secrets", "configmaps"}))
	}, SpecTimeout(5*time.Minute))

	It("a deletion fails after deleteTimeout, and the error names the remaining objects [D10, H-21]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "delete-timeout")
		w.addFinalizer(ctx, "delete-timeout")
		w.requestDeletion(ctx, "delete-timeout")
		Eventually(w.item(ctx, "delete-timeout")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.DeleteFailed))
		last := w.item(ctx, "delete-timeout")(NewGomega(Fail)).Status.LastError
		Expect(last.Message).To(And(ContainSubstring("delete: not done within 1s"), ContainSubstring("held by finalizers example.com/held")))
		Expect(last.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
		w.removeFinalizer(ctx, "delete-timeout")
		w.requestDeletion(ctx, "delete-timeout")
		w.waitUntilDeleted(ctx, "delete-timeout")
	}, SpecTimeout(5*time.Minute))
})
