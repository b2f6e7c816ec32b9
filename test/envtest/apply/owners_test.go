// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/faultnet"
)

const landscaperLabel = "manifest.deployer.landscaper.gardener.cloud/deployitem"

var _ = Describe("Ownership", func() {
	It("refuses an object that another item owns with an error that names this item, and leaves the object unchanged [H-17]", func(ctx SpecContext) {
		w := newEnv(ctx)
		thief := w.newOtherItem()
		w.apply(ctx, w.configMap("a", "key", "value"))
		before := w.get(ctx, "a")
		for _, desired := range []apply.Desired{w.configMap("a", "key", "other"), w.configMap("a", "key", "value")} {
			for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite} {
				desired.Strategy = strategy
				_, err := thief.try(ctx, desired)
				Expect(err).To(MatchError(SatisfyAll(ContainSubstring("items/item"), ContainSubstring(string(w.owner.UID)))))
				Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))
			}
		}
		Expect(w.get(ctx, "a")).To(Equal(before))

		thief.delete(ctx)
		Expect(w.get(ctx, "a")).To(Equal(before))
	})

	It("distinguishes items with the same name in two namespaces [H-17]", func(ctx SpecContext) {
		w := newEnv(ctx)
		namesake := w.newOtherItem()
		namesake.owner.Name, namesake.owner.Namespace = w.owner.Name, "elsewhere"
		w.apply(ctx, w.configMap("a", "key", "value"))
		_, err := namesake.try(ctx, w.configMap("a", "key", "value"))
		Expect(err).To(MatchError(ContainSubstring("items/item")))
	})

	It("supports items with names of more than 63 characters [H-17]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.owner.Name = "a-name-that-is-a-good-deal-longer-than-the-sixty-three-characters-of-a-label"
		w.apply(ctx, w.configMap("a", "key", "value"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationName, w.owner.Name))
	})

	It("adopts an object without an owner with an event, and marks it with another request if no conflict occurred [F29, F37]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx)
		w.createForeign(ctx, "a", "key", "theirs")
		w.createForeign(ctx, "b", "key", "value")
		spent := w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "value"), w.configMap("b", "key", "value")) })
		Expect(spent.Sum()).To(Equal(5), "one request reads the UID of the object with a conflict: %s", spent)
		Expect(w.listReasons()).To(ConsistOf(apply.ReasonAdopted, apply.ReasonAdopted))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "value"))
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "value"), w.configMap("b", "key", "value")) })).To(matchWrites(0))
		for _, name := range []string{"a", "b"} {
			Expect(w.get(ctx, name).Annotations).To(HaveKeyWithValue(ownership.AnnotationAdopted, "true"))
		}

		w.delete(ctx)
		Expect(w.get(ctx, "a").Labels).NotTo(HaveKey(ownership.LabelItem), "an object that existed before the item is kept")
		Expect(w.get(ctx, "a").Annotations).NotTo(HaveKey(ownership.AnnotationAdopted))
		Expect(w.get(ctx, "b").Data).To(HaveKeyWithValue("key", "value"))
		Expect(w.listReasons()).To(ContainElements(apply.ReasonReleased, apply.ReasonReleased))
	})

	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite, apply.StrategyRecreate, apply.StrategyOnDelete} {
		It("releases an adopted object although only its annotation shows the adoption; strategy "+string(strategy)+" [F29, F37]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			values := map[string]string{"conflict": "theirs", "same": "value"}
			for name, value := range values {
				w.createForeign(ctx, name, "key", value)
			}
			desired := []apply.Desired{w.configMap("conflict", "key", "value"), w.configMap("same", "key", "value"), w.configMap("ours", "key", "value")}
			w.apply(ctx, desired...)
			w.restoreInventory(ctx, "conflict", "same", "ours")
			w.apply(ctx, desired...)
			w.restoreInventory(ctx, "conflict", "same", "ours")
			w.delete(ctx)
			for name := range values {
				live := w.get(ctx, name)
				Expect(live).NotTo(BeNil(), name)
				Expect(live.Annotations).NotTo(HaveKey(HavePrefix(ownership.Prefix)))
				Expect(live.Labels).NotTo(HaveKey(ownership.LabelItem))
			}
			Expect(w.get(ctx, "ours")).To(BeNil())
		})
	}

	It("keeps the annotation of an adopted object after a restart between the writes, and after a change of the manifest [F29, F37]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.createForeign(ctx, "a", "key", "theirs", "more", "theirs")
		w.apply(ctx, w.configMap("a", "key", "value"))
		w.apply(ctx, w.configMap("a", "key", "other"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationAdopted, "true"))
		w.stored.Entries[0] = apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "a"}
		w.apply(ctx, w.configMap("a", "key", "other"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationAdopted, "true"))
		w.delete(ctx)
		Expect(w.get(ctx, "a")).NotTo(BeNil())
	})

	It("keeps an adopted object when the item is created again and then deleted [F29, F37]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.createForeign(ctx, "a", "key", "theirs")
		w.apply(ctx, w.configMap("a", "key", "value"))
		again := w.newOtherItem()
		again.owner = w.owner
		again.owner.UID = "another-life"
		again.apply(ctx, w.configMap("a", "key", "value"))
		again.delete(ctx)
		Expect(w.get(ctx, "a")).NotTo(BeNil())
	})

	It("deletes an adopted object with its item if its adoption is AdoptionAlways [F29]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.createForeign(ctx, "a", "key", "theirs")
		wanted := w.configMap("a", "key", "value")
		wanted.Adoption = apply.AdoptionAlways
		w.apply(ctx, wanted)
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("accepts an object of the item although the inventory lacks its UID and another client has added fields [F29]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.RefuseUnowned, w.options.Adoption = true, apply.AdoptionNever
		w.apply(ctx, w.configMap("a", "key", "1"))
		cm := w.get(ctx, "a")
		cm.Data["more"] = "theirs"
		Expect(direct.Update(ctx, cm, client.FieldOwner("another-client"))).To(Succeed())
		w.stored.Entries[0].UID, w.stored.Entries[0].Hash, w.stored.Entries[0].Fingerprint = "", "", ""
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "2", "more": "theirs"}))
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("does not adopt an object of the item after another conflict, or after a change by another client before a restart [F29]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" && r.Name == "a" },
			faultnet.OnlyFirst(1, faultnet.ReturnStatus(http.StatusConflict, metav1.StatusReasonConflict))))
		w.apply(ctx, w.configMap("a", "key", "1"), w.configMap("b", "key", "1"))
		cm := w.get(ctx, "b")
		cm.Data["key"] = "theirs"
		Expect(direct.Update(ctx, cm, client.FieldOwner("another-client"))).To(Succeed())
		for i := range w.stored.Entries {
			if e := &w.stored.Entries[i]; e.Name == "b" {
				e.UID, e.Hash, e.Fingerprint = "", "", ""
			}
		}
		w.apply(ctx, w.configMap("a", "key", "1"), w.configMap("b", "key", "2"))
		Expect(w.get(ctx, "b").Data).To(Equal(map[string]string{"key": "2"}))
		Expect(w.listReasons()).NotTo(ContainElement(apply.ReasonAdopted))
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
		Expect(w.get(ctx, "b")).To(BeNil())
	})

	It("refuses an object without an owner that must not be adopted, and the error names its field manager [F29]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.RefuseUnowned, w.options.Adoption = true, apply.AdoptionNever
		for name, value := range map[string]string{"a": "theirs", "b": "value"} {
			w.createForeign(ctx, name, "key", value)
			before := w.get(ctx, name)
			_, err := w.try(ctx, w.configMap(name, "key", "value"))
			Expect(err).To(MatchError(ContainSubstring("already exists, belongs to the field manager")))
			after := w.get(ctx, name)
			Expect(after.Data).To(Equal(before.Data))
			Expect(after.Labels).To(Equal(before.Labels))
		}
	})

	It("takes over an object of an earlier item with the same name, and removes its fields that left the manifest", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "key", "value", "old", "yes"))
		again := w.newOtherItem()
		again.owner = w.owner
		again.owner.UID = "another-life"
		again.apply(ctx, w.configMap("a", "key", "value"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value"}))
		Expect(w.get(ctx, "a").Labels).To(HaveKeyWithValue(ownership.LabelItem, "another-life"))
		Expect(again.listReasons()).To(ConsistOf(apply.ReasonTakenOver))
		Expect(again.recordRequests(func() { again.apply(ctx, w.configMap("a", "key", "value")) })).To(matchWrites(0))
	})

	for _, value := range []string{"value", "other"} {
		It("takes over an object that Landscaper's own deployer labelled with this item, and its fields; value "+value, func(ctx SpecContext) {
			w := newEnv(ctx)
			obj := w.configMap("a", "key", value, "old", "yes").Object
			obj.SetLabels(map[string]string{landscaperLabel: w.owner.Name})
			Expect(direct.Create(ctx, obj, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
			w.stored = apply.Inventory{Entries: []apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "a", UID: obj.GetUID()}}}
			w.apply(ctx, w.configMap("a", "key", "value"))
			Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value"}))
			Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "value")) })).To(matchWrites(0))
		})
	}

	It("refuses an object that Landscaper's own deployer labelled with another item, and names this item", func(ctx SpecContext) {
		w := newEnv(ctx)
		obj := w.configMap("a", "key", "theirs").Object
		obj.SetLabels(map[string]string{landscaperLabel: "another-landscaper"})
		Expect(direct.Create(ctx, obj, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
		before := w.get(ctx, "a")
		for _, value := range []string{"value", "theirs"} {
			_, err := w.try(ctx, w.configMap("a", "key", value))
			Expect(err).To(MatchError(ContainSubstring(`"another-landscaper"`)))
			after := w.get(ctx, "a")
			Expect(after.Labels).To(Equal(before.Labels))
			Expect(after.Annotations).To(Equal(before.Annotations))
			Expect(after.Data).To(Equal(before.Data))
		}
	})

	It("prunes an object that Landscaper's own deployer managed", func(ctx SpecContext) {
		w := newEnv(ctx)
		obj := w.configMap("a", "key", "value").Object
		obj.SetLabels(map[string]string{landscaperLabel: w.owner.Name})
		Expect(direct.Create(ctx, obj)).To(Succeed())
		entry := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "a", UID: obj.GetUID(), Policy: apply.PolicyFallback}
		w.stored = apply.Inventory{Entries: []apply.Entry{entry}}
		w.apply(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("removes fields that another strategy wrote before", func(ctx SpecContext) {
		w := newEnv(ctx)
		first := w.configMap("a", "key", "value", "old", "yes")
		first.Strategy = apply.StrategyUpdate
		w.apply(ctx, first)
		w.apply(ctx, w.configMap("a", "key", "value"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value"}))
	})

	It("rejects a manifest that sets an ownership label", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a")
		desired.Object.SetLabels(map[string]string{ownership.LabelItem: string(types.UID("me"))})
		_, err := w.try(ctx, desired)
		Expect(err).To(MatchError(ContainSubstring(".metadata.labels." + ownership.LabelItem)))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
	})
})
