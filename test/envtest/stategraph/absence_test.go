// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

var _ = Describe("Components of a kind that the API server does not serve", func() {
	It("deletes the object of a component through another served version of its kind [F70]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		kind, _ := w.CreateDefinition(ctx)
		w.Serve(ctx, kind, "v1", "v2")
		w.start(build(stategraph.NewBuilder().Add("sample", stategraph.Object(newSample))))
		w.runSuccessfully(ctx, "item", settings{})
		w.Serve(ctx, kind, "v2")
		w.Delete(ctx, "item")
		_, err := w.GetSample(ctx, kind, "v2", "item")
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}, SpecTimeout(5*time.Minute))

	It("keeps the item until the kind of a component is served again [F70]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		kind, _ := w.CreateDefinition(ctx)
		w.start(build(stategraph.NewBuilder().Add("sample", stategraph.Object(newSample))))
		w.runSuccessfully(ctx, "item", settings{})
		w.Serve(ctx, kind)
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", contract.ConditionWaiting), HaveField("Message", MatchRegexp("Sample.*its CustomResourceDefinition .* exists"))))))
		w.Serve(ctx, kind, "v1")
		Eventually(func() error { return w.Landscaper.WaitForDeletion(ctx, w.Key("item")) }).WithTimeout(patience).Should(Succeed())
		_, err = w.GetSample(ctx, kind, "v1", "item")
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}, SpecTimeout(5*time.Minute))

	It("applies a component as soon as another program defines its kind [F71]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().Add("sample", stategraph.Object(newSample))))
		w.begin(ctx, "item", settings{})
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("sample", "Progressing"))
		kind, _ := w.CreateDefinition(ctx)
		w.waitUntilSucceeded(ctx, "item")
		_, err := w.GetSample(ctx, kind, "v1", "item")
		Expect(err).NotTo(HaveOccurred())
		Expect(kind.GroupKind()).To(Equal(schema.GroupKind{Group: w.Namespace + ".test.deployerkit.dev", Kind: "Sample"}))
	}, SpecTimeout(5*time.Minute))
})
