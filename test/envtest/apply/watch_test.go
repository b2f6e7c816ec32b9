// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/upkeep"
)

var _ = Describe("with real watches", func() {
	const n = 10
	var (
		w      *env
		there  *watch.Watcher
		events chan watch.Event
	)
	start := func(ctx context.Context) (end func()) {
		client, err := metadata.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(ctx)
		there = watch.New(client, watch.Options{})
		there.Start(ctx)
		started, told := there, make(chan watch.Event, 100)
		end = func() { stop(); started.Wait() }
		DeferCleanup(end)
		events = told
		there.Subscribe(func(e watch.Event) { told <- e })
		w.options.Seen = upkeep.Seen(there)
		w.options.Watch = func(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
			coverage, err := there.Watch(ctx, resource, namespaces...)
			Expect(err).NotTo(HaveOccurred())
			Expect(coverage.Scope).To(Equal(watch.Cluster))
		}
		return end
	}
	run := func(ctx context.Context, desired []apply.Desired) int {
		GinkgoHelper()
		there.Hold(w.owner.UID)
		return w.calls(func() { there.Expect(w.owner.UID, upkeep.Expected(w.apply(ctx, desired...).Owned)) }).Total()
	}
	heal := func(ctx context.Context, desired []apply.Desired, what watch.What) {
		GinkgoHelper()
		var event watch.Event
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.Item).To(Equal(w.owner.UID))
		Expect(event.What).To(Equal(what))
		Expect(run(ctx, desired)).To(Equal(1))
		Expect(run(ctx, desired)).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())
	}

	It("an install is one call per object, a second one none at once, and a change by hand is healed with one", func(ctx SpecContext) {
		w = newEnv(ctx)
		end := start(ctx)
		desired := w.configMaps(n)
		Expect(run(ctx, desired)).To(Equal(n))
		Expect(run(ctx, desired)).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())

		w.edit(ctx, "c1", `{"data":{"key":"by hand"}}`)
		heal(ctx, desired, watch.Changed)
		Expect(w.get(ctx, "c1").Data).To(HaveKeyWithValue("key", "value"))
		w.edit(ctx, "c2", `{"data":{"more":"by hand"}}`)
		Consistently(events, "200ms").ShouldNot(Receive())

		// A new process reads only the stored inventory.
		end()
		w.edit(ctx, "c3", `{"data":{"key":null}}`)
		start(ctx)
		owned := w.engine().Owned(w.stored)
		Expect(owned).To(HaveLen(n))
		w.options.Watch(ctx, owned[0].Resource, []string{w.namespace})
		there.Expect(w.owner.UID, upkeep.Expected(owned))
		heal(ctx, desired, watch.Changed)
		Expect(w.get(ctx, "c3").Data).To(HaveKeyWithValue("key", "value"))
	})

	It("an object that was deleted by hand comes back", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		desired := w.configMaps(2)
		Expect(run(ctx, desired)).To(Equal(2))
		Expect(direct.Delete(ctx, w.get(ctx, "c1"))).To(Succeed())
		var event watch.Event
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.What).To(Equal(watch.Gone))
		Expect(run(ctx, desired)).To(Equal(2), "expected writes: the rejected write of the old object, and the write of the new object")
		Expect(w.get(ctx, "c1")).NotTo(BeNil())
		Expect(run(ctx, desired)).To(BeZero())
	})

	It("an object of onDelete is watched for its end only, a retained one not at all [R15]", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		lasting := func(value string) []apply.Desired {
			return []apply.Desired{by(w.configMap("a", "key", value), apply.OnDelete), with(w.configMap("b"), apply.Retain)}
		}
		Expect(run(ctx, w.some("a", "b"))).To(Equal(2))
		Expect(run(ctx, lasting("other"))).To(BeZero())
		w.edit(ctx, "a", `{"data":{"key":"by hand"}}`)
		w.edit(ctx, "b", `{"data":{"key":"by hand"},"metadata":{"labels":null}}`)
		Consistently(events, "300ms").ShouldNot(Receive())
		Expect(run(ctx, lasting("other"))).To(BeZero())

		Expect(direct.Delete(ctx, w.get(ctx, "b"))).To(Succeed())
		Consistently(events, "200ms").ShouldNot(Receive())
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		var event watch.Event
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.What).To(Equal(watch.Gone))
		run(ctx, lasting("other"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "other"))
		Expect(w.get(ctx, "b")).To(BeNil())
		Expect(run(ctx, lasting("other"))).To(BeZero())
	})

	It("an object of recreate that was changed by hand is made again, and wakes nobody after that [R15, Rx3]", func(ctx SpecContext) {
		w = newEnv(ctx)
		start(ctx)
		w.options.Strategy = apply.Recreate
		Expect(run(ctx, w.some("a"))).To(Equal(1))
		uid := w.get(ctx, "a").UID
		w.edit(ctx, "a", `{"data":{"key":"by hand"}}`)
		var event watch.Event
		Eventually(events).WithTimeout(waitTimeout).Should(Receive(&event))
		Expect(event.What).To(Equal(watch.Changed))
		run(ctx, w.some("a"))
		Expect(w.get(ctx, "a").UID).NotTo(Equal(uid))
		Expect(run(ctx, w.some("a"))).To(BeZero())
		Consistently(events, "200ms").ShouldNot(Receive())
	})
})
