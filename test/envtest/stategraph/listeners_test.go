// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

// newSignedConfigMap returns a component with a ConfigMap. The ConfigMap is ready when another client has signed it.
func newSignedConfigMap(name string) stategraph.Resource {
	return newConfigMap(name, stategraph.ReadyWhen(func(live *corev1.ConfigMap) (stategraph.Readiness, error) {
		return stategraph.ReadyIf(live.Annotations["signed"] == "true", "the object is not signed"), nil
	}))
}

// isThere is a function for ReadyWhen that reports every object as ready. If a component has such a function, the
// library reads the object.
func isThere(*corev1.ConfigMap) (stategraph.Readiness, error) { return stategraph.Ready(), nil }

// sign signs the ConfigMap as another client would. If on is false, sign removes the signature instead.
func (w *env) sign(ctx context.Context, name string, on bool) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	var value any
	if on {
		value = "true"
	}
	body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"signed": value}}}
	Expect(w.Client.Patch(ctx, cm, mergePatch(body), client.FieldOwner("signer"))).To(Succeed())
}

var _ = Describe("Listeners", func() {
	It("a change of an object runs only its own item, within a second and without another trigger [Y8, Y12, Y37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		probe := newProbe()
		w.start(build(stategraph.NewBuilder().Add("count", probe.newExternal()).Add("first", newSignedConfigMap("first")).Add("second", newConfigMap("second"), "first")))
		for _, name := range []string{"one", "two"} {
			w.begin(ctx, name, settings{Value: name})
			Eventually(w.getStates(ctx, name)).WithTimeout(patience).Should(HaveKeyWithValue("second", "Blocked"))
		}
		w.WaitUntilQuiet(ctx)
		runs := probe.getCount("two")
		w.sign(ctx, "one-first", true)
		Eventually(w.getValue(ctx, "one-second")).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Equal("one"))
		w.waitUntilSucceeded(ctx, "one")
		Consistently(func() int { return probe.getCount("two") }).WithTimeout(500 * time.Millisecond).Should(Equal(runs))
		Expect(w.getValue(ctx, "two-second")(NewGomega(Fail))).To(BeEmpty())

		By("changing the object after the end of the job, so that a component is no longer ready")
		w.sign(ctx, "one-first", false)
		Eventually(w.getStates(ctx, "one")).WithTimeout(patience).Should(Equal(map[string]string{"count": "Ready", "first": "Progressing", "second": "Blocked"}))
		Expect(w.ReadItem(ctx, "one")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Succeeded), "a finished job does not change")
		Expect(w.getValue(ctx, "one-second")(NewGomega(Fail))).To(Equal("one"), "a blocked component is not changed")
		w.sign(ctx, "one-first", true)
		Eventually(w.condition(ctx, "one")).WithTimeout(patience).Should(HavePrefix("True AllReady"))
	}, SpecTimeout(5*time.Minute))

	It("a channel triggers one item or all items, and several notifications trigger one run [Y37, Y38, Y40]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		events := make(chan types.NamespacedName)
		probe := newProbe()
		w.start(build(stategraph.NewBuilder().Add("count", probe.newExternal(stategraph.Channel(events))).Add("again", probe.newExternal(stategraph.Channel(events)))))
		for _, name := range []string{"one", "two"} {
			w.runSuccessfully(ctx, name, settings{})
		}
		send := func(name types.NamespacedName) {
			GinkgoHelper()
			Eventually(events).WithTimeout(patience).Should(BeSent(name))
		}
		one, two := probe.getCount("one"), probe.getCount("two")
		send(w.Key("one"))
		Eventually(func() int { return probe.getCount("one") }).WithTimeout(patience).Should(Equal(one + 2))
		send(w.Key("missing"))
		Consistently(func() []int { return []int{probe.getCount("one"), probe.getCount("two")} }).WithTimeout(500 * time.Millisecond).Should(Equal([]int{one + 2, two}))
		send(types.NamespacedName{})
		Eventually(func() []int { return []int{probe.getCount("one"), probe.getCount("two")} }).WithTimeout(patience).Should(Equal([]int{one + 4, two + 2}))
		close(events)
		Consistently(func() []int { return []int{probe.getCount("one"), probe.getCount("two")} }).WithTimeout(500*time.Millisecond).
			Should(Equal([]int{one + 4, two + 2}), "a closed channel triggers no runs")
	}, SpecTimeout(5*time.Minute))

	It("notifications during a run trigger exactly one more run [Y38, Y39]", func(ctx SpecContext) {
		events := make(chan types.NamespacedName)
		for what, notify := range map[string]func(w *env){
			"channel": func(w *env) {
				for range 5 {
					Eventually(events).WithTimeout(patience).Should(BeSent(w.Key("item")))
				}
			},
			"object": func(w *env) {
				for _, on := range []bool{true, false, true} {
					w.sign(ctx, "item-object", on)
				}
			},
		} {
			By(what)
			w := newEnv(ctx, contract.RevisionJobID)
			w.options.Resync = -1
			probe, entered, leave := newProbe(), make(chan struct{}), make(chan struct{})
			slow := stategraph.External(stategraph.ExternalSpec{
				Reconcile: func(ctx context.Context) error {
					entered <- struct{}{}
					select {
					case <-leave:
						return probe.record(ctx)
					case <-ctx.Done():
						return ctx.Err()
					}
				},
				Listeners: []stategraph.Listener{stategraph.Channel(events)},
			})
			w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object", stategraph.ReadyWhen(isThere))).Add("slow", slow, "object")))
			w.begin(ctx, "item", settings{Value: "a"})
			Eventually(entered).WithTimeout(patience).Should(Receive())
			notify(w)
			Consistently(entered).WithTimeout(500*time.Millisecond).ShouldNot(Receive(), "one run at a time")
			leave <- struct{}{}
			Eventually(entered).WithTimeout(patience).Should(Receive())
			leave <- struct{}{}
			w.waitUntilSucceeded(ctx, "item")
			Consistently(entered).WithTimeout(time.Second).ShouldNot(Receive())
			Expect(probe.getCount("item")).To(Equal(2))
		}
	}, SpecTimeout(5*time.Minute))

	It("the writes of a run trigger no other run [Y38]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		probe := newProbe()
		b := stategraph.NewBuilder().Add("count", probe.newExternal())
		for _, name := range newNames("part", 10) {
			b.Add(name, newConfigMap(name), "count")
		}
		w.start(build(b))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.WaitUntilQuiet(ctx)
		Consistently(func() int { return probe.getCount("item") }).WithTimeout(time.Second).Should(Equal(1))
	}, SpecTimeout(5*time.Minute))

	It("a timer and a poll trigger runs at their interval [Y13, Y37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		gate, probe := newGate(), newProbe()
		polled := stategraph.External(stategraph.ExternalSpec{Reconcile: probe.record, Ready: gate.checkReady, Listeners: []stategraph.Listener{stategraph.Poll(time.Second)}})
		w.start(build(stategraph.NewBuilder().Add("polled", polled).Add("behind", newConfigMap("behind"), "polled")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("behind", "Blocked"))
		gate.set("item", true)
		w.waitUntilSucceeded(ctx, "item")
		runs := probe.getCount("item")
		Consistently(func() int { return probe.getCount("item") }).WithTimeout(1500*time.Millisecond).Should(Equal(runs), "polling ends when the component is ready")

		timed := newEnv(ctx, contract.RevisionJobID)
		timed.start(build(stategraph.NewBuilder().Add("timed", probe.newExternal(stategraph.Timer(time.Second)))))
		timed.runSuccessfully(ctx, "timed", settings{})
		Eventually(func() int { return probe.getCount("timed") }).WithTimeout(patience).Should(BeNumerically(">=", 3))
	}, SpecTimeout(5*time.Minute))

	It("a periodic read replaces the watch if the target does not allow one [Y13]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.CreateTarget(ctx, "narrow", w.createUser(ctx, "narrow", newRule([]string{"get", "create", "patch"}, "configmaps")))
		w.start(build(stategraph.NewBuilder().Add("first", newSignedConfigMap("first")).Add("second", newConfigMap("second"), "first")))
		w.begin(ctx, "item", settings{Value: "a"}, onTarget("narrow"))
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("second", "Blocked"))
		w.sign(ctx, "item-first", true)
		w.waitUntilSucceeded(ctx, "item")
		Expect(contract.GetCondition(w.ReadItem(ctx, "item")(NewGomega(Fail)).Status.Conditions, "DriftDetection")).To(HaveField("Reason", "NotWatched"))
	}, SpecTimeout(5*time.Minute))
})
