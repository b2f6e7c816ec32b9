// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// loseInventory removes the provider status of an item, and waits until the deployer has received this change.
func (w *env) loseInventory(ctx context.Context, name string) {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerStatus":null}}`))
	Expect(w.Client.Status().Patch(ctx, di, patch)).To(Succeed())
	Eventually(func(g Gomega) {
		seen := &lsv1alpha1.DeployItem{}
		g.Expect(w.Manager.GetClient().Get(ctx, w.Key(name), seen)).To(Succeed())
		g.Expect(seen.Status.ProviderStatus).To(BeNil())
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("an inventory that was lost", func() {
	It("is restored from the labels by the next job, which prunes [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.Deploy(ctx, "item", config(nil, w.configMaps(3, "a")...))
		w.loseInventory(ctx, "item")
		w.Update(ctx, "item", config(nil, w.configMaps(2, "b")...))
		w.heals(ctx, "cm-1", "b")
		Expect(w.Read(ctx, "cm-2")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("is restored from the labels by a deletion [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.Deploy(ctx, "item", config(nil, w.configMaps(1, "a")[0], entry{"manifest": w.configMap("kept", map[string]string{"key": "a"}), "policy": "keep"}))
		w.loseInventory(ctx, "item")
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Expect(w.Read(ctx, "kept")).NotTo(BeNil())
	}, SpecTimeout(5*time.Minute))
})
