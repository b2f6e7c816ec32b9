// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// findNoOwner is the answer of Options.FindOwner for an owner that does not exist any more.
func findNoOwner(context.Context, ownership.Owner) apply.OwnerState { return apply.OwnerGone }

var _ = Describe("Objects that an item has left behind", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite, apply.StrategyRecreate, apply.StrategyOnDelete} {
		It("takes over an object whose owner no longer exists, with an event; strategy "+string(strategy)+" [F92]", func(ctx SpecContext) {
			w := newEnv(ctx)
			heir := w.newOtherItem()
			heir.options.FindOwner, heir.options.Adoption, heir.options.Strategy = findNoOwner, apply.AdoptionAlways, strategy
			w.apply(ctx, w.configMap("a", "key", "value", "old", "value"))
			heir.apply(ctx, w.configMap("a", "key", "other"))
			live := w.get(ctx, "a")
			owner, _ := ownership.GetOwner(live)
			Expect(owner).To(Equal(heir.owner))
			if strategy != apply.StrategyMerge { // Merge keeps the values that exist
				Expect(live.Data).To(HaveKeyWithValue("key", "other"))
			}
			if strategy == apply.StrategyApply {
				Expect(live.Data).NotTo(HaveKey("old"), "the fields of the former owner")
			}
			Expect(heir.listReasons()).To(ConsistOf(apply.ReasonTakenOver))
			heir.delete(ctx)
			Expect(w.get(ctx, "a")).To(BeNil())
		})
	}

	It("keeps a taken-over object when its new item is deleted, unless its adoption is AdoptionAlways [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		heir := w.newOtherItem()
		heir.options.FindOwner = findNoOwner
		w.apply(ctx, w.configMap("a", "key", "value"))
		heir.apply(ctx, w.configMap("a", "key", "value"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKey(ownership.AnnotationAdopted))
		heir.delete(ctx)
		Expect(w.get(ctx, "a").Labels).NotTo(HaveKey(ownership.LabelItem))
		Expect(heir.listReasons()).To(ConsistOf(apply.ReasonTakenOver, apply.ReasonReleased))
	})

	It("refuses an object whose owner no longer exists if the options refuse objects without an owner [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		heir := w.newOtherItem()
		heir.options.FindOwner, heir.options.Adoption, heir.options.RefuseUnowned = findNoOwner, apply.AdoptionNever, true
		w.apply(ctx, w.configMap("a", "key", "value"))
		before := w.get(ctx, "a")
		_, err := heir.try(ctx, w.configMap("a", "key", "other"))
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("belonged to deploy item items/item"), ContainSubstring("is not adopted"))))
		Expect(w.get(ctx, "a")).To(Equal(before))
	})

	It("refuses an object of an owner that exists, and the error names a way to move the object [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		thief := w.newOtherItem()
		thief.options.Adoption = apply.AdoptionAlways
		thief.options.FindOwner = func(context.Context, ownership.Owner) apply.OwnerState { return apply.OwnerExists }
		kept := w.configMap("a", "key", "value")
		kept.Policy = apply.PolicyKeep
		w.apply(ctx, kept)
		before := w.get(ctx, "a")
		_, err := thief.try(ctx, w.configMap("a", "key", "other"))
		Expect(err).To(MatchError(ContainSubstring("set its policy to keep in that item, and then remove it there")))
		Expect(w.get(ctx, "a")).To(Equal(before), "an object with the policy keep that its item still contains")

		By("removing the object from its item")
		w.apply(ctx)
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationPolicy, ownership.PolicyReleased))
		thief.apply(ctx, w.configMap("a", "key", "other"))
		live := w.get(ctx, "a")
		Expect(live.Data).To(HaveKeyWithValue("key", "other"))
		Expect(live.Annotations).NotTo(HaveKey(ownership.AnnotationPolicy))
		Expect(w.listReasons()).To(ConsistOf(apply.ReasonReleased))
		Expect(thief.listReasons()).To(ConsistOf(apply.ReasonTakenOver))
	})

	for name, way := range map[string]struct {
		label string // the new value of the label, as JSON
		want  string
		stays bool
	}{
		"and manages it after the label was removed":                {label: "null", want: "remove the label %s from the object", stays: true},
		"and manages it after the label was set to the item's name": {label: `"item"`, want: "%s from the object, or set it to item"},
	} {
		It("refuses an object of Landscaper's own deployer, "+name+", as the error advises [F92]", func(ctx SpecContext) {
			const label = "manifest.deployer.landscaper.gardener.cloud/deployitem"
			w := newEnv(ctx)
			theirs := w.configMap("a", "key", "old", "more", "old").Object
			theirs.SetLabels(map[string]string{label: "generated-name"})
			Expect(direct.Create(ctx, theirs, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
			_, err := w.try(ctx, w.configMap("a", "key", "new"))
			Expect(err).To(MatchError(ContainSubstring(way.want, label)))
			Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "old"))

			w.patchConfigMap(ctx, "a", fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, way.label))
			w.apply(ctx, w.configMap("a", "key", "new"))
			Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "new"))
			if !way.stays {
				Expect(w.get(ctx, "a").Data).NotTo(HaveKey("more"), "a field that only Landscaper's deployer had set")
			}
			w.delete(ctx)
			Expect(w.get(ctx, "a") != nil).To(Equal(way.stays))
		})
	}

	It("refuses an object of an owner in another landscape, or of an unknown owner, without a call of FindOwner [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		thief := w.newOtherItem()
		thief.options.FindOwner = func(context.Context, ownership.Owner) apply.OwnerState {
			Fail("FindOwner was called")
			return apply.OwnerGone
		}
		thief.owner.Landscape = "another"
		w.apply(ctx, w.configMap("a", "key", "value"))
		_, err := thief.try(ctx, w.configMap("a", "key", "value"))
		Expect(err).To(MatchError(ContainSubstring("remove the label deployerkit.dev/item")))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))

		thief.owner.Landscape = w.owner.Landscape
		w.patchConfigMap(ctx, "a", `{"metadata":{"annotations":null}}`)
		_, err = thief.try(ctx, w.configMap("a", "key", "value"))
		Expect(err).To(MatchError(ContainSubstring(string(w.owner.UID))))
	})

	It("releases an object when its item starts to ignore it, and not if the item always ignored it [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "key", "value"))
		ignored := w.configMap("a", "key", "value")
		ignored.Policy = apply.PolicyIgnore
		w.apply(ctx, ignored)
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationPolicy, ownership.PolicyReleased))
		Expect(w.recordRequests(func() { w.apply(ctx, ignored) })).To(matchWrites(0))

		w.apply(ctx, w.configMap("a", "key", "value"))
		Expect(w.get(ctx, "a").Annotations).NotTo(HaveKey(ownership.AnnotationPolicy), "the item manages the object again")
	})

	It("removes an owner that no longer exists from a shared object, and releases the object with its last owner [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		heir := w.newOtherItem()
		heir.options.FindOwner = findNoOwner
		namespace := apply.Desired{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w.namespace + "-left"},
		}}}
		live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-left"}}
		w.apply(ctx, namespace)
		heir.apply(ctx, namespace)
		Expect(direct.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		Expect(live.Labels).To(HaveKeyWithValue(ownership.LabelItem, string(heir.owner.UID)))
		Expect(heir.listReasons()).To(ConsistOf(apply.ReasonTakenOver))
		heir.delete(ctx)
		Expect(direct.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		Expect(live.DeletionTimestamp).To(BeNil())
		Expect(live.Labels).NotTo(HaveKey(ownership.LabelItem))
	})

	It("does not wait for an owner that disappears after the item has joined it [F92]", func(ctx SpecContext) {
		w := newEnv(ctx)
		second := w.newOtherItem()
		namespace := apply.Desired{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w.namespace + "-both"},
		}}}
		live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-both"}}
		w.apply(ctx, namespace)
		second.apply(ctx, namespace)
		second.options.FindOwner = findNoOwner
		second.delete(ctx)
		Expect(direct.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		Expect(live.Labels).NotTo(HaveKey(ownership.LabelItem))
		Expect(live.Annotations).NotTo(HaveKey(HavePrefix(ownership.Prefix)))
		Expect(live.DeletionTimestamp).To(BeNil())
	})
})
