// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

func remove(ctx context.Context, obj *object) {
	GinkgoHelper()
	Expect(c.Delete(ctx, obj.DeepCopy())).To(Succeed())
}

// replaceObject deletes an object and creates it again under the same name. The new object has the labels and
// managedFields that a backup would contain.
func replaceObject(ctx context.Context, obj *object) {
	GinkgoHelper()
	backup := read(ctx, obj)
	remove(ctx, obj)
	backup.SetUID("")
	backup.SetResourceVersion("")
	Expect(c.Create(ctx, backup, hand)).To(Succeed())
}

var _ = DescribeTable("a change of a whole object is reported with its reason",
	func(ctx SpecContext, change edit, want ...observe.DriftReason) {
		l := newLab(cp.Config)
		obj := l.run(ctx, manifest(configMap, configMapBody))[0]
		change(ctx, obj)
		var got []observe.DriftReason
		for _, e := range l.collectDrifts(ctx, configMap) {
			Expect(e).To(SatisfyAll(HaveField("Item", l.owner.UID), HaveField("UID", obj.GetUID())))
			got = append(got, e.Reason)
		}
		Expect(got).To(Equal(want))
	},
	Entry("the object is deleted", edit(remove), observe.DriftReasonDeleted),
	Entry("the object is deleted, and created again from a backup", edit(replaceObject), observe.DriftReasonDeleted, observe.DriftReasonReplaced),
	Entry("the object is deleted, kept by a finalizer, and then gone", runInOrder(
		merge(`{"metadata":{"finalizers":["example.org/x"]}}`), remove, merge(`{"metadata":{"finalizers":null}}`)), observe.DriftReasonDeleting, observe.DriftReasonDeleted),
	Entry("the owner label is removed", merge(`{"metadata":{"labels":{"`+ownership.LabelItem+`":null}}}`), observe.DriftReasonDeleted),
	Entry("the owner label is removed, and then set to another value", runInOrder(
		merge(`{"metadata":{"labels":{"`+ownership.LabelItem+`":null}}}`), replaceWith(func(obj *object) {
			labels := obj.GetLabels()
			labels[ownership.LabelItem] = "another"
			obj.SetLabels(labels)
		})), observe.DriftReasonDeleted, observe.DriftReasonRelabelled),
	Entry("the owner label is changed", merge(`{"metadata":{"labels":{"`+ownership.LabelItem+`":"another"}}}`), observe.DriftReasonRelabelled),
	Entry("the managedFields are removed", merge(`{"metadata":{"managedFields":[{}]}}`), observe.DriftReasonWiped),
	Entry("the managedFields are removed, and then a field is edited", runInOrder(
		merge(`{"metadata":{"managedFields":[{}]}}`), merge(`{"data":{"color":"blue"}}`)), observe.DriftReasonWiped),
	Entry("a field is edited twice", runInOrder(
		merge(`{"data":{"color":"blue"}}`), merge(`{"data":{"size":"small"}}`)), observe.DriftReasonChanged, observe.DriftReasonChanged),
)

var _ = Describe("Many writes", func() {
	It("10 000 status writes and applies without a change are no drift", func(ctx SpecContext) {
		const objects, writes, rounds = 10, 1000, 50
		l := newLab(cp.Config)
		manifests := make([]*object, objects)
		for i := range manifests {
			manifests[i] = manifest(deployment, deploymentBody)
		}
		stored := l.run(ctx, manifests...)
		group, groupCtx := errgroup.WithContext(ctx)
		for _, obj := range stored {
			group.Go(func() error {
				for i := range writes {
					patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, i+1))
					if err := c.Status().Patch(groupCtx, obj.DeepCopy(), patch, hand); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range rounds {
			for _, m := range manifests {
				l.send(ctx, m.DeepCopy())
			}
		}
		Expect(group.Wait()).To(Succeed())
		Expect(l.collectDrifts(ctx, deployment)).To(BeEmpty())
		version := read(ctx, stored[0]).GetResourceVersion()
		Expect(l.run(ctx, manifests...)[0].GetResourceVersion()).To(Equal(version))
	})

	It("the last response of a run decides about its own writes, even if the watch is late", func(ctx SpecContext) {
		l := newLab(cp.Config)
		manifests := make([]*object, 30)
		for i := range manifests {
			manifests[i] = manifest(configMap, `"data":{"n":"0"}`)
		}
		for n := range 10 {
			for _, m := range manifests {
				Expect(m.Object).To(HaveKey("data"))
				m.Object["data"] = map[string]any{"n": strconv.Itoa(n)}
			}
			l.run(ctx, manifests...)
		}
		Expect(l.collectDrifts(ctx, configMap)).To(BeEmpty())
	})

	It("each of many random edits is one drift", func(ctx SpecContext) {
		l := newLab(cp.Config)
		m := manifest(sample, "")
		random := newRandom()
		for round := range 150 {
			free, places := random.newTree()
			m.Object["spec"] = map[string]any{"free": free}
			obj := l.run(ctx, m)[0]
			Expect(l.collectDrifts(ctx, sample)).To(BeEmpty(), "after the run of round %d", round)
			change := random.newPatch(places)
			patchWithOperations(change)(ctx, obj)
			Expect(l.collectDrifts(ctx, sample)).To(ConsistOf(HaveField("Reason", observe.DriftReasonChanged)), "round %d: %s", round, change)
		}
	})
})

var _ = Describe("Edits of the key of a list item", func() {
	// The next apply of the item would add a second port with the same name, which the API server rejects. The event
	// names the field manager of the edit. After the item has taken over the fields of that manager, its next apply
	// removes the edited port.
	It("an edited key is detected, and corrected after its fields are taken over", func(ctx SpecContext) {
		l := newLab(cp.Config)
		m := manifest(service, serviceBody)
		obj := l.run(ctx, m)[0]
		patchWithOperations(`[{"op":"replace","path":"/spec/ports/0/port","value":81}]`)(ctx, obj)
		events := l.collectDrifts(ctx, service)
		Expect(events).To(ConsistOf(HaveField("Changes", ContainElement(HaveField("Manager", "hand")))))

		refused := m.DeepCopy()
		l.owner.Mark(refused)
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(refused), client.FieldOwner(l.owner.FieldManager()), client.ForceOwnership)
		Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))

		l.w.Suspend(l.owner.UID)
		edited := read(ctx, obj)
		patch, err := ownership.NewTransferPatch(edited, l.owner, events[0].Changes[0].Manager)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Patch(ctx, edited, client.RawPatch(types.JSONPatchType, patch), hand)).To(Succeed())
		healed := l.run(ctx, m)[0]
		ports, _, _ := unstructured.NestedSlice(healed.Object, "spec", "ports")
		Expect(ports).To(ConsistOf(HaveKeyWithValue("port", BeEquivalentTo(80))))
		Expect(l.collectDrifts(ctx, service)).To(BeEmpty())
	})
})

var _ = Describe("Takeover of fields", func() {
	for _, former := range []string{"a former life", "a program that updates"} {
		It("removes fields of "+former+" in the next apply", func(ctx SpecContext) {
			l := newLab(cp.Config)
			obj := manifest(configMap, `"data":{"color":"red","old":"x"}`)
			var updaters []string
			if former == "a former life" {
				(ownership.Owner{UID: "former", Landscape: "landscape", Namespace: "shop", Name: "web"}).Mark(obj)
				applyAs(ctx, obj, ownership.FormatFieldManager("former"))
			} else {
				updaters = []string{"landscaper"}
				Expect(c.Create(ctx, obj, client.FieldOwner("landscaper"))).To(Succeed())
			}
			patch, err := ownership.NewTransferPatch(obj, l.owner, updaters...)
			Expect(err).NotTo(HaveOccurred())
			stale := obj.DeepCopy()
			Expect(c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
			merge(`{"metadata":{"annotations":{"x":"y"}}}`)(ctx, obj)
			err = c.Patch(ctx, stale, client.RawPatch(types.JSONPatchType, patch))
			Expect(apierrors.IsConflict(err)).To(BeTrue(), "expected a conflict when the fields are taken over with an old version: %v", err)

			m := manifest(configMap, `"data":{"color":"red"}`)
			m.SetName(obj.GetName())
			stored := l.run(ctx, m)[0]
			Expect(stored.Object["data"]).To(Equal(map[string]any{"color": "red"}))
			Expect(l.collectDrifts(ctx, configMap)).To(BeEmpty())
		})
	}
})

var _ = Describe("Restarts", func() {
	It("finds exactly the edits that occurred while no watch was open", func(ctx SpecContext) {
		first := newLab(cp.Config)
		manifests := []*object{
			manifest(configMap, configMapBody), manifest(configMap, configMapBody), manifest(configMap, configMapBody), manifest(sample, sampleBody),
		}
		stored := first.run(ctx, manifests...)
		remembered := make([]observe.BaselineObject, 0, len(stored))
		for _, obj := range stored {
			remembered = append(remembered, observe.BaselineObject{
				Object: observe.Object{Resource: resourceOf(obj.GroupVersionKind()), NamespacedName: client.ObjectKeyFromObject(obj)},
				UID:    obj.GetUID(), Fingerprint: ownership.ComputeFingerprint(obj, first.owner.FieldManager()),
			})
		}
		first.stop()
		merge(`{"data":{"color":"blue"}}`)(ctx, stored[0])
		remove(ctx, stored[1])
		merge(`{"data":{"more":"x"}}`)(ctx, stored[2])
		merge(`{"spec":{"free":{"text":"z"}}}`)(ctx, stored[3])

		second := newLab(cp.Config)
		second.w.SetBaseline(first.owner.UID, remembered)
		for _, kind := range []string{"configmaps", "samples"} {
			_, err := second.w.Watch(ctx, remembered[map[string]int{"configmaps": 0, "samples": 3}[kind]].Object.Resource, "default")
			Expect(err).NotTo(HaveOccurred())
		}
		var got []string
		for _, e := range append(second.collectDrifts(ctx, configMap), second.collectDrifts(ctx, sample)...) {
			got = append(got, e.String())
		}
		Expect(got).To(ConsistOf(
			fmt.Sprintf("configmaps default/%s: changed by hand (data.color)", stored[0].GetName()),
			fmt.Sprintf("configmaps default/%s: gone", stored[1].GetName()),
			fmt.Sprintf("samples.%s default/%s: changed by hand (spec.free.text)", group, stored[3].GetName()),
		))
	})
})
