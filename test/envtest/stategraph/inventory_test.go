// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// newUntypedSecret returns a component with a Secret whose kind is known only during a run.
func newUntypedSecret() stategraph.Resource {
	return stategraph.Object(func(ctx context.Context) (*unstructured.Unstructured, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": item.Namespace, "name": item.Name + "-untyped"},
		}}, nil
	})
}

var _ = Describe("Lost inventory", func() {
	for _, revision := range contract.AllRevisions() {
		// lose deploys an item, stops the deployer, and removes the inventory.
		lose := func(ctx context.Context, b *stategraph.Builder) *env {
			GinkgoHelper()
			w := newEnv(ctx, revision).start(build(b))
			w.runSuccessfully(ctx, "item", settings{Value: "a"})
			w.Manager.Stop()
			w.RemoveProviderStatus(ctx, "item")
			return w
		}

		It("the next run restores the inventory from the labels, and prunes ("+string(revision)+") [F37]", func(ctx SpecContext) {
			w := lose(ctx, newChain("first", "second"))
			w.start(build(newChain("first")))
			w.rerunSuccessfully(ctx, "item")
			Eventually(w.listExisting(ctx, "item-first", "item-second")).WithContext(ctx).WithTimeout(patience).Should(ConsistOf("item-first"))
		}, SpecTimeout(5*time.Minute))

		It("a deletion restores the inventory from the labels ("+string(revision)+") [F37]", func(ctx SpecContext) {
			w := lose(ctx, newChain("first", "second"))
			w.start(build(newChain("first", "second")))
			w.Delete(ctx, "item")
			Expect(w.listExisting(ctx, "item-first", "item-second")(NewWithT(GinkgoTB()))).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It("a deletion restores objects whose kinds only a run determines ("+string(revision)+") [F37]", world.Slow, func(ctx SpecContext) {
			w := lose(ctx, newChain("first").Add("untyped", newUntypedSecret()))
			w.start(build(newChain("first")))
			w.rerunSuccessfully(ctx, "item")
			Eventually(func() bool { return w.hasObject(ctx, &corev1.Secret{}, "item-untyped") }).WithTimeout(patience).Should(BeFalse())
			Expect(w.listExisting(ctx, "item-first")(NewWithT(GinkgoTB()))).To(ConsistOf("item-first"))
		}, SpecTimeout(5*time.Minute))
	}

	It("a deletion releases an object that existed before the item [F29, F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "item-untyped"}, Data: map[string][]byte{"key": []byte("theirs")}}
		Expect(w.Client.Create(ctx, theirs)).To(Succeed())
		w.start(build(newChain("first").Add("untyped", newUntypedSecret())))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()
		w.RemoveProviderStatus(ctx, "item")
		w.start(build(newChain("first")))
		w.Delete(ctx, "item")
		Expect(w.hasObject(ctx, &corev1.Secret{}, "item-untyped")).To(BeTrue())
		Expect(w.listExisting(ctx, "item-first")(NewWithT(GinkgoTB()))).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})
