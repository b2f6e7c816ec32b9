// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Replacement of a removed API version", func() {
	It("keeps the fields that a manager owns in the old and in the new version [F95]", func(ctx SpecContext) {
		w := newEnv(ctx)
		group, remove := w.createVersionedKind(ctx)
		sample := func(version string, spec map[string]any) apply.Desired {
			return w.manifest(group+"/"+version, "Sample", "a", map[string]any{"spec": spec})
		}
		w.apply(ctx, sample("v1beta1", map[string]any{"size": int64(1)}))
		for version, patch := range map[string]string{"v1beta1": `{"spec":{"first":"theirs"}}`, "v1": `{"spec":{"second":"theirs"}}`} {
			err := direct.Patch(ctx, sample(version, nil).Object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("hand"))
			Expect(err).NotTo(HaveOccurred())
		}
		remove()
		w.newClient(nil)
		w.apply(ctx, sample("v1", map[string]any{"size": int64(2)}))
		entries := w.live(ctx, sample("v1", nil)).GetManagedFields()
		Expect(entries).To(ContainElement(SatisfyAll(HaveField("Manager", "hand"), WithTransform(fieldsOf, SatisfyAll(
			ContainSubstring("f:first"), ContainSubstring("f:second"))))), "%v", entries)
	})

	It("skips the replacement before a write that is not an apply, in which the API server removes all managedFields [F95]", func(ctx SpecContext) {
		w := newEnv(ctx)
		group, remove := w.createVersionedKind(ctx)
		sample := func(version string, size int64) apply.Desired {
			d := w.manifest(group+"/"+version, "Sample", "a", map[string]any{"spec": map[string]any{"size": size}})
			d.Strategy = apply.StrategyMergeOverwrite
			return d
		}
		w.apply(ctx, sample("v1", 1))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"first":"theirs"}}`))
		Expect(direct.Patch(ctx, sample("v1beta1", 1).Object, patch, client.FieldOwner("hand"))).To(Succeed())
		remove()
		w.newClient(nil)
		w.apply(ctx, sample("v1", 2))
		live := w.live(ctx, sample("v1", 2))
		Expect(live.Object["spec"]).To(Equal(map[string]any{"size": int64(2), "first": "theirs"}), "the values of the other manager stay")
		Expect(live.GetManagedFields()).To(BeEmpty())
		Expect(w.recordRequests(func() { w.apply(ctx, sample("v1", 2)) }).OnlyWrites().Sum()).To(BeZero())
		w.delete(ctx)
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("lets an item with another UID take over the object and remove the fields that left the manifest [F95]", func(ctx SpecContext) {
		w := newEnv(ctx)
		group, remove := w.createVersionedKind(ctx)
		sample := func(version string, spec map[string]any) apply.Desired {
			return w.manifest(group+"/"+version, "Sample", "a", map[string]any{"spec": spec})
		}
		w.apply(ctx, sample("v1beta1", map[string]any{"size": int64(1), "old": "value"}))
		remove()
		heir := w.newOtherItem()
		heir.newClient(nil)
		heir.owner.Name = w.owner.Name
		heir.apply(ctx, sample("v1", map[string]any{"size": int64(2)}))
		Expect(w.live(ctx, sample("v1", nil)).Object["spec"]).To(Equal(map[string]any{"size": int64(2)}))
		Expect(heir.listReasons()).To(ContainElement(apply.ReasonMigrated))
	})

	It("shows the replacement in a plan, which changes nothing [F95]", func(ctx SpecContext) {
		w := newEnv(ctx)
		group, remove := w.createVersionedKind(ctx)
		sample := func(version string, size int64) apply.Desired {
			return w.manifest(group+"/"+version, "Sample", "a", map[string]any{"spec": map[string]any{"size": size}})
		}
		w.apply(ctx, sample("v1beta1", 1))
		remove()
		w.newClient(nil)
		before := w.live(ctx, sample("v1", 1))
		_, err := w.getPlan(ctx, sample("v1", 2))
		Expect(err).To(MatchError(ContainSubstring("managedFields contains the API version " + group + "/v1beta1")))
		Expect(w.live(ctx, sample("v1", 1))).To(Equal(before))
	})
})

// fieldsOf returns the fields of an entry as JSON.
func fieldsOf(entry metav1.ManagedFieldsEntry) string { return string(entry.FieldsV1.GetRawBytes()) }
