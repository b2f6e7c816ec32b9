// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Lost inventory", func() {
	handler := declarative.HandlerFunc(handleWithCounts)
	both := config(map[string]data{"a": {"key": "1"}, "b": {"key": "1"}})

	for _, revision := range contract.AllRevisions() {
		// begin returns an environment under the revision.
		begin := func(ctx context.Context, kinds ...declarative.ChildKind) *env {
			GinkgoHelper()
			w := newEnv(ctx, kinds...)
			w.World = world.New(ctx, GinkgoTB(), cp, world.Options{Name: "declarative", Landscaper: world.RevisionOf(revision).ToLandscaperOptions()})
			return w
		}
		// lose deploys an item with two ConfigMaps, stops the deployer, and removes the inventory.
		lose := func(ctx context.Context, w *env) {
			GinkgoHelper()
			w.start(handler)
			w.CreateAndRun(ctx, "item", both)
			w.Manager.Stop()
			w.RemoveProviderStatus(ctx, "item")
		}

		It("the next run restores the inventory from the labels, and deletes objects that are no longer desired ("+string(revision)+") [F37]", func(ctx SpecContext) {
			w := begin(ctx, configMapKind)
			lose(ctx, w)
			w.start(handler)
			w.Update(ctx, "item", config(map[string]data{"a": {"key": "1"}}))
			Eventually(w.Data(ctx, "b")).WithContext(ctx).WithTimeout(patience).Should(BeNil())
		}, SpecTimeout(5*time.Minute))

		It("a deletion restores the inventory from the labels ("+string(revision)+") [F37]", func(ctx SpecContext) {
			w := begin(ctx, configMapKind)
			lose(ctx, w)
			w.start(handler)
			w.Delete(ctx, "item")
			Expect(w.Read(ctx, "a")).To(BeNil())
			Expect(w.Read(ctx, "b")).To(BeNil())
		}, SpecTimeout(5*time.Minute))

		It("a deletion restores children of kinds that the options no longer contain ("+string(revision)+") [F37]", func(ctx SpecContext) {
			w := begin(ctx, configMapKind)
			lose(ctx, w)
			w.options.Children = []declarative.ChildKind{secretKind}
			w.start(handler)
			w.Delete(ctx, "item")
			Expect(w.Read(ctx, "a")).To(BeNil())
		}, SpecTimeout(5*time.Minute))

		It("a deletion releases a child that existed before the item ("+string(revision)+") [F29, F37]", func(ctx SpecContext) {
			kind := configMapKind
			kind.Adopt = "ifUnowned"
			w := begin(ctx, kind)
			theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "a"}, Data: map[string]string{"key": "theirs"}}
			Expect(w.Client.Create(ctx, theirs)).To(Succeed())
			lose(ctx, w)
			w.start(handler)
			w.Update(ctx, "item", config(map[string]data{"a": {"key": "2"}}))
			Expect(w.Read(ctx, "a").Data).To(HaveKeyWithValue("key", "2"))
			w.Delete(ctx, "item")
			Expect(w.Read(ctx, "a")).NotTo(BeNil())
			Expect(w.Read(ctx, "b")).To(BeNil())
		}, SpecTimeout(5*time.Minute))
	}
})
