// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
)

// namespace returns an entry whose manifest is a Namespace with the given label.
func namespace(name, label string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{label: "yes"}}}
}

// liveNamespace reads a Namespace from the target.
func (w *env) liveNamespace(ctx context.Context, name string) *corev1.Namespace {
	GinkgoHelper()
	out := &corev1.Namespace{}
	Expect(w.Client.Get(ctx, client.ObjectKey{Name: name}, out)).To(Succeed())
	return out
}

var _ = Describe("Objects that several items contain", func() {
	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		for _, strategy := range []string{"apply", "update", "patch"} {
			It("all items own a Namespace together ("+string(revision)+", "+strategy+") [F62]", func(ctx SpecContext) {
				w := newEnv(ctx, revision).start()
				shared, how := w.Namespace+"-shared", map[string]any{"updateStrategy": strategy}
				for _, name := range []string{"one", "two"} {
					di := w.CreateAndRun(ctx, name, config(how, namespace(shared, name), w.configMap("of-"+name, nil)))
					Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
				}
				both := SatisfyAll(HaveKeyWithValue("one", "yes"), HaveKeyWithValue("two", "yes"))
				Expect(w.liveNamespace(ctx, shared).Labels).To(both)
				for _, name := range []string{"one", "two"} {
					Expect(w.RunAgain(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
				}
				version := w.liveNamespace(ctx, shared).ResourceVersion
				Consistently(func() string { return w.liveNamespace(ctx, shared).ResourceVersion }, 2*time.Second, 100*time.Millisecond).
					Should(Equal(version), "no item reverts a write of another item")

				Expect(w.Landscaper.Delete(ctx, w.Key("one"))).To(Succeed())
				live := w.liveNamespace(ctx, shared)
				Expect(live.DeletionTimestamp).To(BeNil())
				Expect(live.Labels).To(SatisfyAll(HaveKeyWithValue("two", "yes"), Not(HaveKey("one"))))
				Expect(w.RunAgain(ctx, "two").Status.Phase).To(Equal(phases.Succeeded))
				Expect(w.Read(ctx, "of-one")).To(BeNil())
				Expect(w.Read(ctx, "of-two")).NotTo(BeNil())

				two, err := w.Landscaper.Get(ctx, w.Key("two"))
				Expect(err).NotTo(HaveOccurred())
				Expect(live.Labels).To(HaveKeyWithValue(ownership.LabelItem, string(two.UID)))
				Expect(w.Client.Delete(ctx, two)).To(Succeed())
				_, err = w.Landscaper.Trigger(ctx, w.Key("two"))
				Expect(err).NotTo(HaveOccurred())
				Eventually(func() bool { return w.liveNamespace(ctx, shared).DeletionTimestamp != nil }, patience).
					Should(BeTrue(), "the last one deletes it")
			}, SpecTimeout(8*time.Minute))
		}
	}

	It("only the item that the label of a shared object names corrects it; when this item is deleted, another owner takes its place [F62]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.SharedKinds = []schema.GroupKind{{Kind: "ConfigMap"}}
		w.start()
		w.CreateAndRun(ctx, "one", config(nil, w.configMap("shared", map[string]string{"key": "value", "one": "1"})))
		w.CreateAndRun(ctx, "two", config(nil, w.configMap("shared", map[string]string{"key": "value", "two": "2"})))
		w.UpdateConfigMap(ctx, "shared", func(cm *corev1.ConfigMap) { cm.Data["one"] = "wrong" })
		Eventually(w.Data(ctx, "shared"), patience).Should(HaveField("Data", HaveKeyWithValue("one", "1")))

		Expect(w.Landscaper.Delete(ctx, w.Key("one"))).To(Succeed())
		Expect(w.Read(ctx, "shared").Data).To(Equal(map[string]string{"key": "value", "two": "2"}))
		Expect(w.RunAgain(ctx, "two").Status.Phase).To(Equal(phases.Succeeded))
		w.UpdateConfigMap(ctx, "shared", func(cm *corev1.ConfigMap) { delete(cm.Data, "two") })
		Eventually(w.Data(ctx, "shared"), patience).Should(HaveField("Data", HaveKeyWithValue("two", "2")))
		Expect(w.Landscaper.Delete(ctx, w.Key("two"))).To(Succeed())
		Expect(w.Read(ctx, "shared")).To(BeNil())
	}, SpecTimeout(8*time.Minute))

	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		It("an object of a kind that is not shared fails the second item at once, and the error names the first ("+string(revision)+") [F62]", func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			Expect(w.CreateAndRun(ctx, "one", config(nil, w.configMap("mine", map[string]string{"key": "value"}))).Status.Phase).To(Equal(phases.Succeeded))
			di := w.CreateAndRun(ctx, "two", config(nil, w.configMap("mine", map[string]string{"key": "other"})))
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Message).To(ContainSubstring(w.Namespace + "/one"))
			Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
			Expect(w.Read(ctx, "mine").Data).To(HaveKeyWithValue("key", "value"))
		}, SpecTimeout(8*time.Minute))
	}
})
