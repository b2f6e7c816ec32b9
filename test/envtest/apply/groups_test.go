// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Deletion groups", func() {
	secrets := apply.DeletionGroup{Resources: []apply.ResourceType{{APIVersion: "v1", Kind: "Secret"}}}
	named := func(names ...string) apply.DeletionGroup {
		return apply.DeletionGroup{Resources: []apply.ResourceType{{APIVersion: "v1", Kind: "ConfigMap", Names: names}}}
	}

	It("a group waits for objects that finalizers hold, reports these, and starts no later group [H-24]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, append(w.newConfigMaps("a", "b"), w.manifest("v1", "Secret", "s", nil))...)
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		groups := []apply.DeletionGroup{named("a"), secrets, {Type: apply.GroupNamespaced}}
		for range 2 {
			inv, report, err := w.newEngine().Delete(ctx, w.owner, w.stored, groups)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Reason()).To(ContainSubstring("/a: is being deleted, held by finalizers example.org/held"))
			w.store(inv)
			Expect(w.listNames()).To(ConsistOf("a", "b", "s"))
		}
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		Expect(w.recordResources("delete", func() { w.delete(ctx, groups...) })).To(Equal([]string{"secrets", "configmaps"}))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("a group with ForceDelete removes finalizers", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		w.delete(ctx, apply.DeletionGroup{Type: apply.GroupNamespaced, ForceDelete: true})
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("objects that no group selects stay in the inventory unpatched, and the report names them [H-22]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.newConfigMaps("a", "b")
		desired[1].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		w.apply(ctx, desired...)
		before := w.get(ctx, "b")
		report := w.delete(ctx, named("a"), apply.DeletionGroup{Type: apply.GroupEmpty})
		Expect(report.Skipped).To(ConsistOf(HaveField("Name", "b")))
		Expect(w.listNames()).To(ConsistOf("b"))
		Expect(w.get(ctx, "b")).To(Equal(before))
	})

	It("annotates and patches an object before its deletion, but no other object of the same name", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.newConfigMaps("a")
		desired[0].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		desired[0].PatchBeforeDelete = map[string]any{"data": map[string]any{"key": "bye"}}
		w.apply(ctx, desired...)
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		_, _, err := w.newEngine().Delete(ctx, w.owner, w.stored, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "bye"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue("example.org/bye", "1"))

		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		theirs := w.createForeign(ctx, "a", "key", "theirs")
		w.delete(ctx)
		Expect(w.get(ctx, "a").UID).To(Equal(theirs.GetUID()))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "theirs"))
	})

	It("a group deletes all objects of a kind although the inventory is empty, and does not wait for objects that come back [H-23]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.createForeign(ctx, "x")
		w.createForeign(ctx, "y")
		w.createForeign(ctx, "z")
		all := apply.DeletionGroup{DeleteAll: true, Resources: []apply.ResourceType{
			{APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{w.namespace}, Names: []string{"x", "y"}},
		}}
		report := w.delete(ctx, all)
		Expect(report.Deleted).To(Equal(2))
		Expect(w.get(ctx, "x")).To(BeNil())
		Expect(w.get(ctx, "z")).NotTo(BeNil())
	})

	It("a group deletes all objects of a kind in another cluster, and none in the cluster of the item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		elsewhere := &faultnet.Counter{}
		there := newClient(elsewhere.Wrap(cfg))
		w.createForeign(ctx, "x")
		group := named("x")
		group.DeleteAll, group.Engine = true, apply.New(there, there.RESTMapper(), apply.Options{})
		Expect(w.recordRequests(func() { w.delete(ctx, group) }).Sum()).To(BeZero())
		Expect(elsewhere.Snapshot().OnlyWrites().Sum()).To(Equal(1))
		Expect(w.get(ctx, "x")).To(BeNil())
		Expect(w.get(ctx, "a")).NotTo(BeNil())
	})

	It("an update deletes objects by the groups for updates", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, append(w.newConfigMaps("a"), w.manifest("v1", "Secret", "s", nil))...)
		w.options.PruneGroups = []apply.DeletionGroup{secrets}
		report := w.apply(ctx)
		Expect(report.Skipped).To(ConsistOf(HaveField("Name", "a")))
		Expect(w.listNames()).To(ConsistOf("a"))
	})

	It("sends two requests per object, and stops at a refused deletion with the reason [H-21]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b")...)
		Expect(w.recordRequests(func() { w.delete(ctx) }).Sum()).To(Equal(4))

		w.apply(ctx, w.newConfigMaps("a", "b")...)
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" && r.Name == "a" },
			faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
		inv, _, err := w.newEngine().Delete(ctx, w.owner, w.stored, nil)
		Expect(err).To(MatchError(ContainSubstring("/a: injected by the test")))
		Expect(inv.Entries).To(ConsistOf(HaveField("Name", "a")))
	})
})
