// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// newSampleManifest returns the manifest of an object of a kind that World.CreateDefinition created.
func (w *env) newSampleManifest(kind schema.GroupVersionKind, name string) map[string]any {
	return map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"namespace": w.Namespace, "name": name}}
}

var _ = Describe("Objects of a kind that the API server does not serve", func() {
	for title, restart := range map[string]bool{"": false, ", also after a restart": true} {
		It("deletes an object through another served version of its kind"+title+" [F70]", func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			kind, _ := w.CreateDefinition(ctx)
			w.Serve(ctx, kind, "v1", "v2")
			w.CreateAndRun(ctx, "item", config(nil, w.newSampleManifest(kind, "a")))
			w.Serve(ctx, kind, "v2")
			if restart {
				w.Manager.Stop()
				w.start()
			}
			_, err := w.GetSample(ctx, kind, "v2", "a")
			Expect(err).NotTo(HaveOccurred())
			w.Delete(ctx, "item")
			_, err = w.GetSample(ctx, kind, "v2", "a")
			Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}, SpecTimeout(5*time.Minute))

		It("keeps an item until the kind of its object is served again, and reports the reason"+title+" [F70]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			kind, _ := w.CreateDefinition(ctx)
			w.CreateAndRun(ctx, "item", config(nil, w.newSampleManifest(kind, "a")))
			w.Serve(ctx, kind)
			if restart {
				w.Manager.Stop()
				w.start()
			}
			Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
			_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
			Expect(err).NotTo(HaveOccurred())
			Eventually(func(g Gomega) string {
				di := w.ReadItem(ctx, "item")(g)
				for _, condition := range di.Status.Conditions {
					if condition.Type == contract.ConditionWaiting {
						return condition.Message
					}
				}
				return ""
			}).WithTimeout(patience).Should(And(ContainSubstring("Sample"), ContainSubstring("CustomResourceDefinition samples."+kind.Group)))
			w.Serve(ctx, kind, "v1")
			Eventually(func() error { return w.Landscaper.WaitForDeletion(ctx, w.Key("item")) }).WithTimeout(patience).Should(Succeed())
			_, err = w.GetSample(ctx, kind, "v1", "a")
			Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}, SpecTimeout(5*time.Minute))
	}

	It("deletes an item whose object is gone together with the definition of its kind [F70]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		kind, remove := w.CreateDefinition(ctx)
		w.CreateAndRun(ctx, "item", config(nil, w.newSampleManifest(kind, "a")))
		remove()
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("applies an object as soon as another program defines its kind, and the other objects before that [F71]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		group := schema.GroupVersionKind{Group: w.Namespace + ".test.deployerkit.dev", Version: "v1", Kind: "Sample"}
		w.Create(ctx, "item", config(nil, w.newSampleManifest(group, "a"), w.configMap("b", map[string]string{"key": "1"})))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "1")))
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Progressing))
		kind, _ := w.CreateDefinition(ctx)
		di := w.Finished(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		_, err := w.GetSample(ctx, kind, "v1", "a")
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(5*time.Minute))
})
