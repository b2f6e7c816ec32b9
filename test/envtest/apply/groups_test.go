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
	secrets := apply.Group{Resources: []apply.ResourceType{{APIVersion: "v1", Kind: "Secret"}}}
	named := func(names ...string) apply.Group {
		return apply.Group{Resources: []apply.ResourceType{{APIVersion: "v1", Kind: "ConfigMap", Names: names}}}
	}

	It("a group waits for objects that finalizers hold, reports these, and starts no later group [H-24]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, append(w.some("a", "b"), w.manifest("v1", "Secret", "s", nil))...)
		w.edit(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		groups := []apply.Group{named("a"), secrets, {Type: apply.GroupNamespaced}}
		for range 2 {
			inv, report, err := w.engine().Delete(ctx, w.owner, w.stored, groups)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Reason()).To(ContainSubstring("/a: is being deleted, held by finalizers example.org/held"))
			w.store(inv)
			Expect(w.names()).To(ConsistOf("a", "b", "s"))
		}
		w.edit(ctx, "a", `{"metadata":{"finalizers":null}}`)
		Expect(w.sequence("delete", func() { w.delete(ctx, groups...) })).To(Equal([]string{"secrets", "configmaps"}))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("a group with ForceDelete removes finalizers", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.some("a")...)
		w.edit(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		w.delete(ctx, apply.Group{Type: apply.GroupNamespaced, ForceDelete: true})
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("objects that no group selects stay in the inventory unpatched, and the report names them [H-22]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.some("a", "b")
		desired[1].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		w.apply(ctx, desired...)
		before := w.get(ctx, "b")
		report := w.delete(ctx, named("a"), apply.Group{Type: apply.GroupEmpty})
		Expect(report.Left).To(ConsistOf(HaveField("Name", "b")))
		Expect(w.names()).To(ConsistOf("b"))
		Expect(w.get(ctx, "b")).To(Equal(before))
	})

	It("annotates and patches an object before its deletion, but no other object of the same name", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.some("a")
		desired[0].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		desired[0].PatchBeforeDelete = map[string]any{"data": map[string]any{"key": "bye"}}
		w.apply(ctx, desired...)
		w.edit(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		_, _, err := w.engine().Delete(ctx, w.owner, w.stored, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "bye"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue("example.org/bye", "1"))

		w.edit(ctx, "a", `{"metadata":{"finalizers":null}}`)
		theirs := w.foreign(ctx, "a", "key", "theirs")
		w.delete(ctx)
		Expect(w.get(ctx, "a").UID).To(Equal(theirs.GetUID()))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "theirs"))
	})

	It("a group deletes all objects of a kind although the inventory is empty, and does not wait for objects that come back [H-23]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.foreign(ctx, "x")
		w.foreign(ctx, "y")
		w.foreign(ctx, "z")
		all := apply.Group{DeleteAll: true, Resources: []apply.ResourceType{
			{APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{w.namespace}, Names: []string{"x", "y"}},
		}}
		report := w.delete(ctx, all)
		Expect(report.Deleted).To(Equal(2))
		Expect(w.get(ctx, "x")).To(BeNil())
		Expect(w.get(ctx, "z")).NotTo(BeNil())
	})

	It("a group deletes all objects of a kind in another cluster, and none in the cluster of the item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.some("a")...)
		elsewhere := &faultnet.Counter{}
		there := newClient(elsewhere.Wrap(cfg))
		w.foreign(ctx, "x")
		group := named("x")
		group.DeleteAll, group.Cluster = true, apply.New(there, there.RESTMapper(), apply.Options{})
		Expect(w.calls(func() { w.delete(ctx, group) }).Total()).To(BeZero())
		Expect(elsewhere.Snapshot().Writes().Total()).To(Equal(1))
		Expect(w.get(ctx, "x")).To(BeNil())
		Expect(w.get(ctx, "a")).NotTo(BeNil())
	})

	It("an update deletes objects by the groups for updates", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, append(w.some("a"), w.manifest("v1", "Secret", "s", nil))...)
		w.options.PruneGroups = []apply.Group{secrets}
		report := w.apply(ctx)
		Expect(report.Left).To(ConsistOf(HaveField("Name", "a")))
		Expect(w.names()).To(ConsistOf("a"))
	})

	It("sends two requests per object, and stops at a refused deletion with the reason [H-21]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.some("a", "b")...)
		Expect(w.calls(func() { w.delete(ctx) }).Total()).To(Equal(4))

		w.apply(ctx, w.some("a", "b")...)
		w.wire.Inject(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" && r.Name == "a" },
			faultnet.Refuse(http.StatusForbidden, metav1.StatusReasonForbidden)))
		inv, _, err := w.engine().Delete(ctx, w.owner, w.stored, nil)
		Expect(err).To(MatchError(ContainSubstring("/a: injected by the test")))
		Expect(inv.Entries).To(ConsistOf(HaveField("Name", "a")))
	})
})
