// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
)

// newSession returns a session of the engine that begins with the stored inventory.
func (w *env) newSession() *apply.Session { return w.newEngine().NewSession(w.owner, w.stored) }

// runSession processes several groups of objects in one session, one group after the other. It claims and then applies
// each group, and stores the resulting inventory.
func (w *env) runSession(ctx context.Context, waves ...[]apply.Desired) []apply.ApplyResult {
	GinkgoHelper()
	s := w.newSession()
	out := []apply.ApplyResult{}
	for _, wave := range waves {
		Expect(s.Claim(ctx, wave...)).To(Succeed())
		for _, one := range wave {
			outcomes, err := s.Apply(ctx, one)
			Expect(err).NotTo(HaveOccurred())
			out = append(out, outcomes...)
		}
	}
	Expect(s.Report().Waiting).To(BeEmpty())
	w.store(s.Inventory())
	return out
}

func (w *env) newRefs(names ...string) []apply.Ref {
	out := []apply.Ref{}
	for _, name := range names {
		out = append(out, apply.ToRef(w.configMap(name).Object))
	}
	return out
}

var _ = Describe("Sessions", func() {
	It("applies 50 objects in 10 waves with 50 writes and 10 checkpoints, and sends no request the second time", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx)
		waves := [][]apply.Desired{}
		for all := w.configMaps(50); len(all) > 0; all = all[5:] {
			waves = append(waves, all[:5])
		}
		first := w.recordRequests(func() {
			Expect(w.runSession(ctx, waves...)).To(SatisfyAll(HaveLen(50), HaveEach(SatisfyAll(HaveField("Changed", true), HaveField("Live", Not(BeNil()))))))
		})
		Expect(first).To(matchWrites(50), first.String())
		Expect(w.checkpoints).To(Equal(10))
		second := w.recordRequests(func() {
			Expect(w.runSession(ctx, waves...)).To(SatisfyAll(HaveLen(50), HaveEach(SatisfyAll(HaveField("Changed", false), HaveField("Live", BeNil())))))
		})
		Expect(second).To(matchWrites(0), second.String())
		Expect(w.checkpoints).To(Equal(10))
		Expect(w.recordRequests(func() { Expect(w.apply(ctx, w.configMaps(50)...).Unchanged).To(Equal(50)) })).To(matchWrites(0), "the engine regards the objects as unchanged")
	})

	It("accepts concurrent calls, and each checkpoint contains the previous one", func(ctx SpecContext) {
		w := newEnv(ctx)
		var stored []int
		next := w.options.Checkpoint
		w.options.Checkpoint = func(ctx context.Context, inv apply.Inventory) error {
			stored = append(stored, len(inv.Entries))
			return next(ctx, inv)
		}
		s := w.newSession()
		spent := w.recordRequests(func() {
			nodes := sync.WaitGroup{}
			for i := range 10 {
				nodes.Go(func() {
					defer GinkgoRecover()
					mine := []apply.Desired{w.configMap(fmt.Sprintf("n%d", i)), w.configMap(fmt.Sprintf("m%d", i)), w.configMap("shared")}
					Expect(s.Claim(ctx, mine[:2]...)).To(Succeed())
					_, err := s.Apply(ctx, mine...)
					Expect(err).NotTo(HaveOccurred())
					s.Report()
					Expect(s.Inventory().Entries).NotTo(BeEmpty())
				})
			}
			nodes.Wait()
		})
		Expect(spent).To(matchWrites(21), "the object that all calls contain is written once: "+spent.String())
		Expect(stored).To(SatisfyAll(HaveLen(11), WithTransform(func(n []int) bool {
			for i := range n[1:] {
				if n[i] >= n[i+1] {
					return false
				}
			}
			return true
		}, BeTrue())))
		w.store(s.Inventory())
		Expect(w.listNames()).To(ConsistOf(w.listOwned(ctx)))
		report := s.Report()
		Expect(report.Applied).To(Equal(21))
		Expect(report.Unchanged).To(Equal(9))
		Expect(report.Owned).To(HaveLen(21))
	})

	It("writes objects in the order of the caller, regardless of their kinds [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		role := w.newObjectOfEachStage()[1]
		order := w.recordWrites(func() {
			_, err := w.newSession().Apply(ctx, w.configMap("z"), role, w.configMap("a"))
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(order).To(Equal([]string{"z", role.Object.GetName(), "a"}))
	})

	It("writes webhook configurations after all other objects, because one of them may be the server [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		webhook := w.manifest("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", w.namespace, map[string]any{"webhooks": []any{}})
		webhook.Object.SetNamespace("")
		order := w.recordWrites(func() {
			outcomes, err := w.newSession().Apply(ctx, webhook, w.configMap("server"))
			Expect(err).NotTo(HaveOccurred())
			Expect(outcomes).To(HaveExactElements(HaveField("Ref.Name", w.namespace), HaveField("Ref.Name", "server")))
		})
		Expect(order).To(Equal([]string{"server", w.namespace}))
		Expect(direct.Delete(ctx, webhook.Object)).To(Succeed())
	})

	It("returns the outcome of each object, and continues after errors [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		w.apply(ctx, w.newConfigMaps("same", "held")...)
		w.patchConfigMap(ctx, "held", `{"metadata":{"finalizers":["example.org/held"]}}`)
		Expect(direct.Delete(ctx, w.get(ctx, "held"))).To(Succeed())
		w.failWrites("broken")
		s := w.newSession()
		out, err := s.Apply(ctx, append(w.newConfigMaps("broken", "held", "same", "new"), withPolicy(w.configMap("never"), apply.PolicyRetain))...)
		Expect(err).To(MatchError(ContainSubstring("/broken: injected by the test")))
		Expect(out).To(HaveExactElements(
			SatisfyAll(HaveField("Ref.Name", "broken"), HaveField("Err", MatchError(ContainSubstring("/broken: "))), HaveField("Live", BeNil())),
			SatisfyAll(HaveField("Ref.Name", "held"), HaveField("Err", BeNil()), HaveField("WaitMessage", ContainSubstring("is being deleted"))),
			SatisfyAll(HaveField("Ref.Name", "same"), HaveField("Changed", false), HaveField("Live", BeNil()), HaveField("WaitMessage", BeEmpty())),
			SatisfyAll(HaveField("Ref.Name", "new"), HaveField("Changed", true), HaveField("Live.Object", HaveKeyWithValue("data", map[string]any{"key": "value"}))),
			HaveField("Ref.Name", "never"),
		))
		Expect(s.Report().Reason()).To(ContainSubstring("/held: is being deleted"))
		w.wire.SetInjector(nil)
		w.patchConfigMap(ctx, "held", `{"metadata":{"finalizers":null}}`)
		out, err = s.Apply(ctx, w.newConfigMaps("held", "broken")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HaveEach(HaveField("WaitMessage", BeEmpty())))
		Expect(s.Report().IsDone()).To(BeTrue(), "the session no longer waits for the object")

		w.options.Force = true
		again, err := w.newEngine().NewSession(w.owner, s.Inventory()).Apply(ctx, w.newConfigMaps("new")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(ConsistOf(SatisfyAll(HaveField("Changed", false), HaveField("Live", Not(BeNil())))), "the write changes nothing")
	})

	It("discovers kinds that an earlier call defined", func(ctx SpecContext) {
		w := newEnv(ctx)
		all := w.newObjectOfEachStage()
		s := w.newSession()
		Expect(s.Claim(ctx, all[3])).To(Succeed())
		out, err := s.Apply(ctx, all[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ConsistOf(HaveField("WaitMessage", ContainSubstring("the cluster does not know"))))
		Eventually(func(g Gomega) {
			for _, one := range []apply.Desired{all[3], all[2], all[0]} {
				out, err := s.Apply(ctx, one)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out).To(HaveEach(HaveField("WaitMessage", BeEmpty())))
			}
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
	})

	It("writes nothing while its claims cannot be stored, and claims the objects again", func(ctx SpecContext) {
		w := newEnv(ctx)
		boom, store := errors.New("boom"), w.options.Checkpoint
		w.options.Checkpoint = func(context.Context, apply.Inventory) error { return boom }
		s := w.newSession()
		for range 2 {
			Expect(s.Claim(ctx, w.newConfigMaps("a", "b")...)).To(MatchError(boom))
			Expect(w.recordRequests(func() {
				out, err := s.Apply(ctx, w.newConfigMaps("a")...)
				Expect(err).To(MatchError(boom))
				Expect(out).To(BeNil())
			})).To(matchWrites(0))
			Expect(s.Inventory().Entries).To(BeEmpty())
		}
		w.options.Checkpoint, w.options.MaxInventory = store, 300
		out, err := w.newSession().Apply(ctx, w.configMaps(10)...)
		Expect(err).To(MatchError(ContainSubstring("10 objects are too many")))
		Expect(out).To(BeNil())
		Expect(w.listOwned(ctx)).To(BeEmpty())
	})

	It("stops when its context ends, and returns the cause for each object that it did not write", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		ended, end := context.WithCancelCause(ctx)
		s := w.newSession()
		w.options.Checkpoint = nil
		Expect(s.Claim(ctx, w.newConfigMaps("a", "b")...)).To(Succeed())
		cause := errors.New("enough")
		w.wire.SetInjector(w.onWrite("a", func() { end(cause) }))
		out, err := s.Apply(ended, w.newConfigMaps("a", "b")...)
		w.wire.SetInjector(nil)
		Expect(err).To(MatchError(cause))
		Expect(out[1]).To(SatisfyAll(HaveField("Ref.Name", "b"), HaveField("Err", MatchError(cause))))
		Expect(w.get(ctx, "b")).To(BeNil())
	})

	It("stores the component and the requirements of each object", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.newConfigMaps("a", "b")
		desired[0].Component = "database"
		desired[1].Component, desired[1].Requires = "web", []string{"database", "queue"}
		w.runSession(ctx, desired)
		Expect(w.stored.Entries).To(HaveExactElements(
			SatisfyAll(HaveField("Component", "database"), HaveField("Requires", BeEmpty())),
			SatisfyAll(HaveField("Component", "web"), HaveField("Requires", []string{"database", "queue"})),
		))
		desired[1].Requires = []string{"database"}
		Expect(w.recordRequests(func() { w.runSession(ctx, desired) })).To(matchWrites(0), "the field is not a part of the object")
		Expect(w.stored.Entries[1].Requires).To(Equal([]string{"database"}))

		s := w.newSession()
		Expect(s.Claim(ctx, desired[0])).To(Succeed())
		Expect(s.ListUnclaimed()).To(HaveExactElements(HaveField("Component", "web")))
		desired[0].Component = "web"
		Expect(s.Claim(ctx, desired[0])).To(MatchError(ContainSubstring(`is returned by two components, "database" and "web"`)))
	})

	It("rejects a list with its name", func(ctx SpecContext) {
		w := newEnv(ctx)
		list := w.manifest("v1", "ConfigMapList", "l", map[string]any{"items": []any{w.configMap("a").Object.Object}})
		out, err := w.newSession().Apply(ctx, list, w.configMap("b"))
		Expect(err).To(MatchError(ContainSubstring("ConfigMapList " + w.namespace + "/l: is a list; pass its items individually")))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		Expect(out).To(BeNil())
		Expect(w.listOwned(ctx)).To(BeEmpty())
	})
})
