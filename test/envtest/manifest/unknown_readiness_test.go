// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Objects of an item that its inventory does not contain", func() {
	named := func(w *env, names ...string) map[string]any {
		var all []any
		for _, name := range names {
			all = append(all, w.configMap(name, map[string]string{"value": name}))
		}
		return config(nil, all...)
	}

	It("deletes an object that the item wrote, for example after a restore of the target [F109]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a", "b"))
		backup := w.Read(ctx, "b")
		manager := ownership.FormatFieldManager(w.Get(ctx, "item").UID)
		w.Update(ctx, "item", named(w, "a"))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		w.CreateFromBackup(ctx, backup, manager)
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.RunAgain(ctx, "item")
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("leaves and reports a copy of an object that another program made [F109] [F98]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a", "b"))
		copied := w.Read(ctx, "b")
		copied.Name = "copy"
		w.CreateFromBackup(ctx, copied, "mirror")
		Eventually(w.Condition(ctx, "item", managed.ConditionUnknownObjects)).WithTimeout(patience).Should(
			HaveField("Message", ContainSubstring("ConfigMap "+w.Namespace+"/copy")))
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.RunAgain(ctx, "item")
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "copy")).NotTo(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("stops reporting a copy that no longer exists [F109]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a", "b"))
		copied := w.Read(ctx, "b")
		copied.Name = "copy"
		w.CreateFromBackup(ctx, copied, "mirror")
		Eventually(w.Condition(ctx, "item", managed.ConditionUnknownObjects)).WithTimeout(patience).ShouldNot(BeNil())
		Expect(w.Client.Delete(ctx, w.Read(ctx, "copy"))).To(Succeed())
		Eventually(w.Condition(ctx, "item", managed.ConditionUnknownObjects)).WithTimeout(patience).Should(BeNil())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("deletes the object together with the item although the process has just started [F109]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a"))
		old := w.Get(ctx, "item").Status.ProviderStatus
		w.Update(ctx, "item", named(w, "a", "b"))
		w.Manager.Stop()
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"providerStatus": old}})
		Expect(err).NotTo(HaveOccurred())
		di := w.Get(ctx, "item")
		Expect(w.Client.Status().Patch(ctx, di, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		_, err = w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		w.start()
		Eventually(func() error { return w.Client.Get(ctx, w.Key("item"), &lsv1alpha1.DeployItem{}) }).WithTimeout(patience).ShouldNot(Succeed())
		Expect(w.Read(ctx, "a")).To(BeNil())
		Expect(w.Read(ctx, "b")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("deletes the object together with the item although the status was restored from a backup [F109] [F112]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a"))
		old := w.Get(ctx, "item").Status.ProviderStatus
		w.Update(ctx, "item", named(w, "a", "b"))
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"providerStatus": old}})
		Expect(err).NotTo(HaveOccurred())
		di := w.Get(ctx, "item")
		Expect(w.Client.Status().Patch(ctx, di, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		w.Update(ctx, "item", named(w, "a"))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("deletes an object of an earlier item with the same name [F72]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", named(w, "a", "b"))
		di := w.Get(ctx, "item")
		Expect(w.Client.Patch(ctx, di, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(client.IgnoreNotFound(w.Client.Delete(ctx, di))).To(Succeed())
		Eventually(func() error { return w.Client.Get(ctx, w.Key("item"), &lsv1alpha1.DeployItem{}) }).WithTimeout(patience).ShouldNot(Succeed())
		Expect(w.Read(ctx, "b")).NotTo(BeNil(), "the item was removed without its objects")
		w.CreateAndRun(ctx, "item", named(w, "a"))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		Expect(w.Read(ctx, "a").Labels).To(HaveKeyWithValue(ownership.LabelItem, string(w.Get(ctx, "item").UID)))
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil())
	}, SpecTimeout(5*time.Minute))
})
