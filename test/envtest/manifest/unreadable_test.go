// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Secrets that the Target may neither read nor write", func() {
	// deploy creates an item with a ConfigMap and a Secret. The response to the first write of the Secret is lost, so
	// that the Secret may exist.
	deploy := func(ctx SpecContext, w *env) {
		GinkgoHelper()
		w.CreateTarget(ctx, "limited", w.newLimitedKubeconfig(ctx, "*"))
		isSecret := func(r faultnet.Request) bool { return r.Resource == "secrets" && r.Verb != "get" }
		w.Counter.SetInjector(faultnet.When(isSecret, faultnet.OnlyFirst(1, faultnet.ReturnError(http.ErrHandlerTimeout))))
		secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": w.Namespace, "name": "hidden"}}
		manifests := append(w.configMaps(1, "a"), secret)
		w.Create(ctx, "item", config(nil, manifests...), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "limited" })
		Eventually(w.item(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError", HaveField("Message",
			And(ContainSubstring("Secret "+w.Namespace+"/hidden"), ContainSubstring("forbidden")))))
		Expect(w.inventory(ctx, "item")).To(HaveLen(2))
	}

	It("deletes the item, and an event names the Secret that may remain [F96]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		deploy(ctx, w)
		Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
		w.Finished(ctx, "item")
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), jobID)).To(Succeed())
		Eventually(w.Condition(ctx, "item", contract.ConditionWaiting)).WithTimeout(patience).Should(HaveField("Message",
			ContainSubstring("Secret "+w.Namespace+"/hidden: it is not known whether the object exists")))
		Expect(w.Landscaper.WaitForDeletion(ctx, w.Key("item"))).To(Succeed())
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Eventually(w.events(ctx, "item")).WithTimeout(patience).Should(ContainElement(
			HavePrefix("MayRemain: Secret " + w.Namespace + "/hidden: may remain in the cluster")))
	}, SpecTimeout(5*time.Minute))

	It("ends later jobs without the Secret, and an event names the Secret that may remain [F96]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		deploy(ctx, w)
		Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
		w.Finished(ctx, "item")
		Expect(w.Update(ctx, "item", config(nil, w.configMaps(1, "b")...)).Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.inventory(ctx, "item")).To(HaveLen(1))
		Eventually(w.events(ctx, "item")).WithTimeout(patience).Should(ContainElement(HavePrefix("MayRemain: Secret " + w.Namespace + "/hidden")))
	}, SpecTimeout(5*time.Minute))
})
