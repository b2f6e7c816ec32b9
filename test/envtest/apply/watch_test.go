// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

var _ = Describe("Watches", func() {
	const n = 10
	var (
		w      *env
		there  *observe.Watcher
		events chan observe.Drift
	)
	start := func(ctx context.Context) (end func()) {
		client, err := metadata.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(ctx)
		there = observe.New(client, observe.Options{})
		there.Start(ctx)
		started, told := there, make(chan observe.Drift, 100)
		end = func() { stop(); started.Wait() }
		DeferCleanup(end)
		events = told
		there.OnDrift(func(e observe.Drift) { told <- e })
		w.options.Watched = there
		w.options.StartWatch = func(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
			coverage, err := there.Watch(ctx, resource, namespaces...)
			Expect(err).NotTo(HaveOccurred())
			Expect(coverage.Scope).To(Equal(observe.ScopeCluster))
		}
		return end
	}
	run := func(ctx context.Context, desired []apply.Desired) int {
		GinkgoHelper()
		there.Suspend(w.owner.UID)
		return w.recordRequests(func() { there.SetBaseline(w.owner.UID, w.apply(ctx, desired...).Owned) }).Sum()
	}
	heal := func(ctx context.Context, desired []apply.Desired, what observe.DriftReason) {
		GinkgoHelper()
		var event observe.Drift
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.Item).To(Equal(w.owner.UID))
		Expect(event.Reason).To(Equal(what))
		Expect(run(ctx, desired)).To(Equal(1))
		Expect(run(ctx, desired)).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())
	}

	It("an installation sends one request per object, a second one none, and a correction one", func(ctx SpecContext) {
		w = newEnv(ctx)
		end := start(ctx)
		desired := w.configMaps(n)
		Expect(run(ctx, desired)).To(Equal(n))
		Expect(run(ctx, desired)).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())

		w.patchConfigMap(ctx, "c1", `{"data":{"key":"by hand"}}`)
		heal(ctx, desired, observe.DriftReasonChanged)
		Expect(w.get(ctx, "c1").Data).To(HaveKeyWithValue("key", "value"))
		w.patchConfigMap(ctx, "c2", `{"data":{"more":"by hand"}}`)
		Consistently(events, "200ms").ShouldNot(Receive())

		// A new process reads only the stored inventory.
		end()
		w.patchConfigMap(ctx, "c3", `{"data":{"key":null}}`)
		start(ctx)
		owned := w.newEngine().ListOwned(w.stored)
		Expect(owned).To(HaveLen(n))
		w.options.StartWatch(ctx, owned[0].Object.Resource, []string{w.namespace})
		there.SetBaseline(w.owner.UID, owned)
		heal(ctx, desired, observe.DriftReasonChanged)
		Expect(w.get(ctx, "c3").Data).To(HaveKeyWithValue("key", "value"))
	})

	It("a deleted object is created again", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		desired := w.configMaps(2)
		Expect(run(ctx, desired)).To(Equal(2))
		Expect(direct.Delete(ctx, w.get(ctx, "c1"))).To(Succeed())
		var event observe.Drift
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.Reason).To(Equal(observe.DriftReasonDeleted))
		Expect(run(ctx, desired)).To(Equal(2), "expected writes: the rejected write of the old object, and the write of the new object")
		Expect(w.get(ctx, "c1")).NotTo(BeNil())
		Expect(run(ctx, desired)).To(BeZero())
	})

	It("an OnDelete object is watched only for its deletion, and a retained object is not watched [R15]", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		lasting := func(value string) []apply.Desired {
			return []apply.Desired{withStrategy(w.configMap("a", "key", value), apply.StrategyOnDelete), withPolicy(w.configMap("b"), apply.PolicyRetain)}
		}
		Expect(run(ctx, w.newConfigMaps("a", "b"))).To(Equal(2))
		Expect(run(ctx, lasting("other"))).To(BeZero())
		w.patchConfigMap(ctx, "a", `{"data":{"key":"by hand"}}`)
		w.patchConfigMap(ctx, "b", `{"data":{"key":"by hand"},"metadata":{"labels":null}}`)
		Consistently(events, "300ms").ShouldNot(Receive())
		Expect(run(ctx, lasting("other"))).To(BeZero())

		Expect(direct.Delete(ctx, w.get(ctx, "b"))).To(Succeed())
		Consistently(events, "200ms").ShouldNot(Receive())
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		var event observe.Drift
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.Reason).To(Equal(observe.DriftReasonDeleted))
		run(ctx, lasting("other"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "other"))
		Expect(w.get(ctx, "b")).To(BeNil())
		Expect(run(ctx, lasting("other"))).To(BeZero())
	})

	It("a changed object with the strategy Recreate is created again, and triggers no other run [R15, Rx3]", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		w.options.Strategy = apply.StrategyRecreate
		Expect(run(ctx, w.newConfigMaps("a"))).To(Equal(1))
		uid := w.get(ctx, "a").UID
		w.patchConfigMap(ctx, "a", `{"data":{"key":"by hand"}}`)
		var event observe.Drift
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.Reason).To(Equal(observe.DriftReasonChanged))
		run(ctx, w.newConfigMaps("a"))
		Expect(w.get(ctx, "a").UID).NotTo(Equal(uid))
		Expect(run(ctx, w.newConfigMaps("a"))).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())
	})
})
