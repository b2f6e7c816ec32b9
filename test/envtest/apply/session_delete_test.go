// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

// onWrite returns an injector that calls f before each write of the object with the given name.
func (w *env) onWrite(name string, f func()) faultnet.Injector {
	return func(req *http.Request) (*http.Response, error) {
		if r, ok := faultnet.RequestOf(req); ok && r.Verb != "get" && r.Name == name {
			f()
		}
		return nil, nil
	}
}

// deleteInSession deletes objects in a session, and stores the resulting inventory.
func (w *env) deleteInSession(ctx context.Context, names ...string) ([]apply.Waiting, error) {
	s := w.newSession()
	waiting, err := s.Delete(ctx, w.newRefs(names...)...)
	w.store(s.Inventory())
	return waiting, err
}

var _ = Describe("Deletions of a session", func() {
	It("deletes the given objects in the given order, and no other objects", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		w.apply(ctx, w.newConfigMaps("a", "b", "c", "d")...)
		s := w.newSession()
		_, err := s.Apply(ctx, w.newConfigMaps("a", "e")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.ListUnclaimed()).To(HaveLen(3))
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "b", "c", "d", "e"))
		order := w.recordWrites(func() {
			waiting, err := s.Delete(ctx, w.newRefs("d", "b", "never-was")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(waiting).To(BeEmpty())
		})
		Expect(order).To(Equal([]string{"d", "b"}))
		Expect(s.Report().Deleted).To(Equal(2))
		w.store(s.Inventory())
		Expect(w.listNames()).To(ConsistOf("a", "c", "e"))
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "c", "e"))

		_, err = s.Apply(ctx, w.newConfigMaps("b")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.listNames()).To(ConsistOf("a", "b", "c", "e"), "it is claimed again, and stored")
	})

	It("keeps an object in the inventory until it is known to be gone", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.newConfigMaps("a")
		desired[0].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		desired[0].PatchBeforeDelete = map[string]any{"data": map[string]any{"key": "bye"}}
		w.runSession(ctx, desired)
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		for range 2 {
			waiting, err := w.deleteInSession(ctx, "a")
			Expect(err).NotTo(HaveOccurred())
			Expect(waiting).To(ConsistOf(HaveField("Message", ContainSubstring("held by finalizers"))))
			Expect(w.listNames()).To(ConsistOf("a"))
		}
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "bye"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue("example.org/bye", "1"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		waiting, err := w.deleteInSession(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(waiting).To(BeEmpty())
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("reports a denied deletion, and deletes the other objects [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b", "c")...)
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" && r.Name == "a" },
			faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
		_, err := w.deleteInSession(ctx, "a", "b")
		w.wire.SetInjector(nil)
		Expect(err).To(MatchError(ContainSubstring("/a: injected by the test")))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))
		Expect(w.listNames()).To(ConsistOf("a", "c"))
	})

	It("deletes no object of another owner", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "kept")...)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		w.createForeign(ctx, "a")
		w.createForeign(ctx, "b")
		w.apply(ctx, withPolicy(w.configMap("kept", "key", "value"), apply.PolicyKeep), withPolicy(w.configMap("a"), apply.PolicyRetain))
		// The process was killed after Claim and before the first write, so the entries in the inventory have no UID.
		Expect(w.newSession().Claim(ctx, w.newConfigMaps("b", "c")...)).To(Succeed())
		stranger := w.newOtherItem()
		stranger.apply(ctx, w.newConfigMaps("c")...)
		before := []*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b"), w.get(ctx, "c")}
		Expect(w.listNames()).To(ConsistOf("a", "b", "c", "kept"))
		waiting, err := w.deleteInSession(ctx, "a", "b", "c", "kept")
		Expect(err).NotTo(HaveOccurred())
		Expect(waiting).To(BeEmpty())
		Expect([]*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b"), w.get(ctx, "c")}).To(Equal(before))
		Expect(w.get(ctx, "kept").Data).To(HaveKeyWithValue("key", "value"))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("deletes an object that a killed process created and did not store in full", func(ctx SpecContext) {
		w := newEnv(ctx)
		Expect(w.newSession().Claim(ctx, w.newConfigMaps("a")...)).To(Succeed())
		claimed := w.stored
		w.runSession(ctx, w.newConfigMaps("a"))
		w.stored = claimed
		_, err := w.deleteInSession(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	It("keeps an object that another API group still claims", func(ctx SpecContext) {
		w := newEnv(ctx)
		event := w.manifest("v1", "Event", "a", map[string]any{"involvedObject": map[string]any{"namespace": w.namespace}})
		w.apply(ctx, event)
		old := w.stored.Entries[0]
		old.APIVersion = "events.k8s.io/v1"
		w.stored.Entries = append(w.stored.Entries, old)
		s := w.newSession()
		_, err := s.Apply(ctx, event)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.ListUnclaimed()).To(HaveExactElements(HaveField("APIVersion", "events.k8s.io/v1")))
		_, err = s.Delete(ctx, s.ListUnclaimed()[0].Ref())
		Expect(err).NotTo(HaveOccurred())
		Expect(direct.Get(ctx, client.ObjectKeyFromObject(event.Object), &corev1.Event{})).To(Succeed())
		Expect(s.Inventory().Entries).To(HaveExactElements(HaveField("APIVersion", "v1")))
	})

	for _, lost := range []bool{false, true} {
		for n := range 6 {
			It(fmt.Sprintf("completes the writes and deletions after the process was killed at write %d, %s the write took effect [D10, D11]", n, effect[lost]), func(ctx SpecContext) {
				w := newEnv(ctx)
				w.options.Concurrency = 1
				w.createForeign(ctx, "foreign", "key", "theirs")
				untouched := w.get(ctx, "foreign")
				w.runSession(ctx, w.newConfigMaps("a", "b"))
				walk := func(e *apply.Engine) (apply.Inventory, apply.Report, error) {
					s := e.NewSession(w.owner, w.stored)
					for _, wave := range [][]apply.Desired{w.newConfigMaps("b"), w.newConfigMaps("c"), w.newConfigMaps("d", "e")} {
						if _, err := s.Apply(ctx, wave...); err != nil {
							return s.Inventory(), s.Report(), err
						}
					}
					gone := slices.Collect(func(yield func(apply.Ref) bool) {
						for _, one := range s.ListUnclaimed() {
							yield(one.Ref())
						}
					})
					_, err := s.Delete(ctx, gone...)
					return s.Inventory(), s.Report(), err
				}
				w.untilKilled(n, lost, walk)
				Expect(w.listNames()).To(ContainElements(w.listOwned(ctx)), "each existing object of the item is in the inventory")
				w.untilKilled(100, false, walk)
				Expect(w.listOwned(ctx)).To(ConsistOf("b", "c", "d", "e"))
				Expect(w.listNames()).To(ConsistOf("b", "c", "d", "e"))
				Expect(w.get(ctx, "foreign")).To(Equal(untouched))
				Expect(w.listReasons()).To(BeEmpty())
			})
		}
	}
})
