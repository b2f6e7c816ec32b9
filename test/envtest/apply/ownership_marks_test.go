// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

// storeForgedInventory stores an inventory that contains a ConfigMap that the item never applied. A user who may write
// the status of the item can store such an inventory.
func (w *env) storeForgedInventory(uid types.UID, name string, change func(*apply.Entry)) {
	entry := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: name, UID: uid, Hash: "h", Fingerprint: "k"}
	change(&entry)
	w.stored = apply.Inventory{Entries: []apply.Entry{entry}}
}

var _ = Describe("Inventories that name objects of other owners", func() {
	forced := apply.DeletionGroup{Type: apply.GroupNamespaced, ForceDelete: true}
	ways := map[string]struct {
		change func(*apply.Entry)
		remove func(ctx context.Context, w *env)
	}{
		"a deletion":        {func(*apply.Entry) {}, func(ctx context.Context, w *env) { w.delete(ctx) }},
		"a forced deletion": {func(*apply.Entry) {}, func(ctx context.Context, w *env) { w.delete(ctx, forced) }},
		"a deletion that the inventory marks as started": {func(e *apply.Entry) { e.Deleting = true }, func(ctx context.Context, w *env) { w.delete(ctx, forced) }},
		"a patch before deletion": {func(e *apply.Entry) {
			e.PatchBeforeDelete = map[string]any{"data": map[string]any{"key": "broken"}}
		}, func(ctx context.Context, w *env) { w.delete(ctx) }},
		"a prune": {func(*apply.Entry) {}, func(ctx context.Context, w *env) { w.apply(ctx) }},
		"a session": {func(*apply.Entry) {}, func(ctx context.Context, w *env) {
			session := w.newEngine().NewSession(w.owner, w.stored)
			_, err := session.Delete(ctx, w.stored.Entries[0].Ref())
			Expect(err).NotTo(HaveOccurred())
			w.store(session.Inventory())
		}},
	}
	for title, way := range ways {
		It(title+" leaves the object of another owner, with an event [F9]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.newOtherItem().apply(ctx, w.configMap("theirs", "key", "value"))
			w.createForeign(ctx, "unowned", "key", "value")
			landscapers := w.configMap("landscapers", "key", "value").Object
			landscapers.SetLabels(map[string]string{landscaperLabel: "another-landscaper"})
			Expect(direct.Create(ctx, landscapers, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
			for _, name := range []string{"theirs", "unowned", "landscapers"} {
				before := w.get(ctx, name)
				w.storeForgedInventory(before.UID, name, way.change)
				w.events = nil
				way.remove(ctx, w)
				Expect(w.get(ctx, name)).To(Equal(before))
				Expect(w.stored.Entries).To(BeEmpty())
				Expect(w.listReasons()).To(ConsistOf(apply.ReasonLeftAlone))
			}
		})
	}

	It("leaves an object of a shared kind to its owners [F9]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("theirs", "key", "value"))
		first.createForeign(ctx, "unowned", "key", "value")
		for _, name := range []string{"theirs", "unowned"} {
			for _, deleting := range []bool{false, true} {
				before := second.get(ctx, name)
				second.storeForgedInventory(before.UID, name, func(e *apply.Entry) { e.Deleting, e.Shared = deleting, true })
				second.events = nil
				second.delete(ctx, forced)
				Expect(second.get(ctx, name)).To(Equal(before))
				Expect(second.stored.Entries).To(BeEmpty())
				Expect(second.listReasons()).To(ConsistOf(apply.ReasonLeftAlone))
			}
		}
	})

	It("keeps the finalizers of an object of another owner [F9]", func(ctx SpecContext) {
		w := newEnv(ctx)
		obj := w.configMap("a").Object
		obj.SetFinalizers([]string{"example.org/held"})
		Expect(direct.Create(ctx, obj)).To(Succeed())
		Expect(direct.Delete(ctx, obj.DeepCopy())).To(Succeed())
		w.storeForgedInventory(obj.GetUID(), "a", func(e *apply.Entry) { e.Deleting = true })
		inv, _, err := w.newEngine().Delete(ctx, w.owner, w.stored, []apply.DeletionGroup{forced})
		Expect(err).NotTo(HaveOccurred())
		Expect(inv.Entries).To(BeEmpty())
		Expect(w.get(ctx, "a").Finalizers).To(ConsistOf("example.org/held"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
	})

	for _, strategy := range []apply.Strategy{apply.StrategyRecreate, apply.StrategyApply, apply.StrategyUpdate} {
		It("does not replace an object of another owner that a manifest names too; strategy "+string(strategy)+" [F9]", func(ctx SpecContext) {
			w := newEnv(ctx)
			before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}, Data: map[string]string{"key": "theirs"}, Immutable: new(true)}
			Expect(direct.Create(ctx, before, client.FieldOwner("another-client"))).To(Succeed())
			w.storeForgedInventory(before.UID, "a", func(*apply.Entry) {})
			w.options.Recreate = true
			desired := w.configMap("a", "key", "ours")
			desired.Strategy = strategy
			_, err := w.try(ctx, desired)
			Expect(err).To(HaveOccurred())
			Expect(w.get(ctx, "a").UID).To(Equal(before.UID))
			Expect(w.get(ctx, "a").Data).To(Equal(before.Data))
		})
	}
})

var _ = Describe("Deletion of an object of the item", func() {
	It("deletes an object without a read if a watch shows its label, and with a read otherwise [F9]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		Expect(w.recordRequests(func() { w.delete(ctx) }).Sum()).To(Equal(2), "expected requests: the deletion, and a read that checks whether the object is gone")

		w.apply(ctx, w.newConfigMaps("a")...)
		w.options.Watched = nil
		Expect(w.recordRequests(func() { w.delete(ctx) }).Sum()).To(Equal(3))
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("deletes an object whose label was removed, because the item owns its fields [F9]", func(ctx SpecContext) {
		for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate} {
			w := newEnv(ctx)
			desired := w.newConfigMaps("a")
			desired[0].Strategy = strategy
			w.apply(ctx, desired...)
			w.patchConfigMap(ctx, "a", `{"metadata":{"labels":null,"annotations":null}}`)
			w.delete(ctx)
			Expect(w.get(ctx, "a")).To(BeNil())
		}
	})

	It("does not delete an object that takes the name between the check and the deletion [F9]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		var theirs types.UID
		w.wire.SetInjector(func(req *http.Request) (*http.Response, error) {
			if r, ok := faultnet.RequestOf(req); ok && r.Verb == "delete" && theirs == "" {
				Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
				theirs = w.createForeign(ctx, "a").GetUID()
			}
			return nil, nil
		})
		w.delete(ctx)
		Expect(w.get(ctx, "a").UID).To(Equal(theirs))
	})

	It("deletes an object that Landscaper's own deployer created for the item [F9]", func(ctx SpecContext) {
		w := newEnv(ctx)
		obj := w.configMap("a", "key", "value").Object
		obj.SetLabels(map[string]string{landscaperLabel: w.owner.Name})
		Expect(direct.Create(ctx, obj, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
		w.storeForgedInventory(obj.GetUID(), "a", func(e *apply.Entry) { e.Hash, e.Fingerprint = "", "" })
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})
})
