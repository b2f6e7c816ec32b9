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

// dismiss deletes objects in a session, and stores the resulting inventory.
func (w *env) dismiss(ctx context.Context, names ...string) ([]apply.Waiting, error) {
	s := w.session()
	waiting, err := s.Delete(ctx, w.refs(names...)...)
	w.store(s.Inventory())
	return waiting, err
}

var _ = Describe("Deletions of a session", func() {
	It("deletes the given objects in the given order, and no other objects", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		w.apply(ctx, w.some("a", "b", "c", "d")...)
		s := w.session()
		_, err := s.Apply(ctx, w.some("a", "e")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Unclaimed()).To(HaveLen(3))
		Expect(w.ours(ctx)).To(ConsistOf("a", "b", "c", "d", "e"))
		order := w.written(func() {
			waiting, err := s.Delete(ctx, w.refs("d", "b", "never-was")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(waiting).To(BeEmpty())
		})
		Expect(order).To(Equal([]string{"d", "b"}))
		Expect(s.Report().Deleted).To(Equal(2))
		w.store(s.Inventory())
		Expect(w.names()).To(ConsistOf("a", "c", "e"))
		Expect(w.ours(ctx)).To(ConsistOf("a", "c", "e"))

		_, err = s.Apply(ctx, w.some("b")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.names()).To(ConsistOf("a", "b", "c", "e"), "it is claimed again, and stored")
	})

	It("keeps an object in the inventory until it is known to be gone", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.some("a")
		desired[0].AnnotateBeforeDelete = map[string]string{"example.org/bye": "1"}
		desired[0].PatchBeforeDelete = map[string]any{"data": map[string]any{"key": "bye"}}
		w.in(ctx, desired)
		w.edit(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		for range 2 {
			waiting, err := w.dismiss(ctx, "a")
			Expect(err).NotTo(HaveOccurred())
			Expect(waiting).To(ConsistOf(HaveField("Reason", ContainSubstring("held by finalizers"))))
			Expect(w.names()).To(ConsistOf("a"))
		}
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "bye"))
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue("example.org/bye", "1"))
		w.edit(ctx, "a", `{"metadata":{"finalizers":null}}`)
		waiting, err := w.dismiss(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(waiting).To(BeEmpty())
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("reports a denied deletion, and deletes the other objects [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.some("a", "b", "c")...)
		w.wire.Inject(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" && r.Name == "a" },
			faultnet.Refuse(http.StatusForbidden, metav1.StatusReasonForbidden)))
		_, err := w.dismiss(ctx, "a", "b")
		w.wire.Inject(nil)
		Expect(err).To(MatchError(ContainSubstring("/a: injected by the test")))
		Expect(apply.ClassOf(err)).To(Equal(apply.Retry))
		Expect(w.names()).To(ConsistOf("a", "c"))
	})

	It("deletes no object of another owner", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.some("a", "kept")...)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		w.foreign(ctx, "a")
		w.foreign(ctx, "b")
		w.apply(ctx, with(w.configMap("kept", "key", "value"), apply.Keep), with(w.configMap("a"), apply.Retain))
		// The process was killed after Claim and before the first write, so the entries in the inventory have no UID.
		Expect(w.session().Claim(ctx, w.some("b", "c")...)).To(Succeed())
		stranger := w.other()
		stranger.apply(ctx, w.some("c")...)
		before := []*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b"), w.get(ctx, "c")}
		Expect(w.names()).To(ConsistOf("a", "b", "c", "kept"))
		waiting, err := w.dismiss(ctx, "a", "b", "c", "kept")
		Expect(err).NotTo(HaveOccurred())
		Expect(waiting).To(BeEmpty())
		Expect([]*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b"), w.get(ctx, "c")}).To(Equal(before))
		Expect(w.get(ctx, "kept").Data).To(HaveKeyWithValue("key", "value"))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("deletes an object that a killed process created and did not store in full", func(ctx SpecContext) {
		w := newEnv(ctx)
		Expect(w.session().Claim(ctx, w.some("a")...)).To(Succeed())
		claimed := w.stored
		w.in(ctx, w.some("a"))
		w.stored = claimed
		_, err := w.dismiss(ctx, "a")
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
		s := w.session()
		_, err := s.Apply(ctx, event)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Unclaimed()).To(HaveExactElements(HaveField("APIVersion", "events.k8s.io/v1")))
		_, err = s.Delete(ctx, s.Unclaimed()[0].Ref())
		Expect(err).NotTo(HaveOccurred())
		Expect(direct.Get(ctx, client.ObjectKeyFromObject(event.Object), &corev1.Event{})).To(Succeed())
		Expect(s.Inventory().Entries).To(HaveExactElements(HaveField("APIVersion", "v1")))
	})

	for _, lost := range []bool{false, true} {
		for n := range 6 {
			It(fmt.Sprintf("completes its writes and deletions after a kill at write %d, whose response is lost: %t [D10, D11]", n, lost), func(ctx SpecContext) {
				w := newEnv(ctx)
				w.options.Concurrency = 1
				w.foreign(ctx, "foreign", "key", "theirs")
				untouched := w.get(ctx, "foreign")
				w.in(ctx, w.some("a", "b"))
				walk := func(e *apply.Engine) (apply.Inventory, apply.Report, error) {
					s := e.Session(w.owner, w.stored)
					for _, wave := range [][]apply.Desired{w.some("b"), w.some("c"), w.some("d", "e")} {
						if _, err := s.Apply(ctx, wave...); err != nil {
							return s.Inventory(), s.Report(), err
						}
					}
					gone := slices.Collect(func(yield func(apply.Ref) bool) {
						for _, one := range s.Unclaimed() {
							yield(one.Ref())
						}
					})
					_, err := s.Delete(ctx, gone...)
					return s.Inventory(), s.Report(), err
				}
				w.untilKilled(n, lost, walk)
				Expect(w.names()).To(ContainElements(w.ours(ctx)), "each existing object of the item is in the inventory")
				w.untilKilled(100, false, walk)
				Expect(w.ours(ctx)).To(ConsistOf("b", "c", "d", "e"))
				Expect(w.names()).To(ConsistOf("b", "c", "d", "e"))
				Expect(w.get(ctx, "foreign")).To(Equal(untouched))
				Expect(w.reasons()).To(BeEmpty())
			})
		}
	}
})
