// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"errors"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Triggers of a run", func() {
	It("the start of the process runs each item once, and writes nothing when nothing changed [Y35]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.StartWithin = -1
		probe := newProbe()
		graph := func() *stategraph.Graph {
			return build(stategraph.NewBuilder().Add("count", probe.newExternal()).Add("object", newConfigMap("object"), "count"))
		}
		w.start(graph())
		names := newNames("item", 3)
		for _, name := range names {
			w.runSuccessfully(ctx, name, settings{Value: "a"})
		}
		w.Manager.Stop()
		versions := map[string]string{}
		for _, name := range names {
			versions[name] = w.ReadItem(ctx, name)(NewGomega(Fail)).ResourceVersion
			Expect(probe.getCount(name)).To(Equal(1))
		}
		before := w.Counter.Snapshot()
		w.start(graph())
		for _, name := range names {
			Eventually(func() int { return probe.getCount(name) }).WithTimeout(patience).Should(Equal(2))
		}
		Consistently(func() int { return probe.getCount(names[0]) }).WithTimeout(time.Second).Should(Equal(2), "once")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero())
		for _, name := range names {
			Expect(w.ReadItem(ctx, name)(NewGomega(Fail)).ResourceVersion).To(Equal(versions[name]), "the item is not written either")
		}
	}, SpecTimeout(5*time.Minute))

	It("a restart with another graph changes the objects without another trigger [Y41, Y26, Yx7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.StartWithin = -1
		w.start(build(stategraph.NewBuilder().Add("old", newConfigMap("old")).Add("part", newConfigMap("part"), "old")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()
		w.start(build(stategraph.NewBuilder().Add("first", newConfigMap("first")).Add("part", newConfigMap("part"), "first")))
		Eventually(w.getValue(ctx, "item-first")).WithTimeout(patience).Should(Equal("a"))
		Eventually(w.getValue(ctx, "item-old")).WithTimeout(patience).Should(BeEmpty())
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]string{"first": "Ready", "part": "Ready"}))
	}, SpecTimeout(5*time.Minute))

	It("a change of the spec starts a run, and a change of the status does not [Y36]", func(ctx SpecContext) {
		for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
			w := newEnv(ctx, revision)
			probe := newProbe()
			w.start(build(stategraph.NewBuilder().Add("count", probe.newExternal()).Add("object", newConfigMap("object"), "count")))
			w.runSuccessfully(ctx, "item", settings{Value: "a"})
			runs := probe.getCount("item")
			di := w.ReadItem(ctx, "item")(NewGomega(Fail))
			body := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Weather", "status": "True", "reason": "Sunny", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
			}}}}
			Expect(w.Client.Status().Patch(ctx, di, mergePatch(body))).To(Succeed())
			Consistently(func() int { return probe.getCount("item") }).WithTimeout(time.Second).Should(Equal(runs))

			Expect(w.Landscaper.Update(ctx, w.Key("item"), newConfig(settings{Value: "b"}))).To(Succeed())
			Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, w.Key("item"))).To(Succeed())
			Eventually(w.getValue(ctx, "item-object")).WithTimeout(patience).Should(Equal("b"))
			w.Manager.Stop()
		}
	}, SpecTimeout(5*time.Minute))

	It("a failed run is repeated at growing intervals until it succeeds [Yx1]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		var mu sync.Mutex
		var times []time.Time
		failing := stategraph.External(stategraph.ExternalSpec{Reconcile: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, time.Now()); len(times) < 7 {
				return errors.New("not today")
			}
			return nil
		}})
		w.start(build(stategraph.NewBuilder().Add("failing", failing)))
		w.begin(ctx, "item", settings{})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", ContainSubstring("component failing: not today")))
		w.waitUntilSucceeded(ctx, "item")
		Expect(times).To(HaveLen(7))
		Expect(times[6].Sub(times[5])).To(BeNumerically(">", 3*times[2].Sub(times[1])), "the interval doubles each time")
	}, SpecTimeout(5*time.Minute))

	It("a paused item does not run [Yx2]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("item"), map[string]string{contract.PausedAnnotation: "true"})).To(Succeed())
		Eventually(func(g Gomega) { // the deployer receives the annotation a moment later
			w.updateValue(ctx, "item-object", "by hand")
			g.Consistently(w.getValue(ctx, "item-object")).WithTimeout(time.Second).Should(Equal("by hand"))
		}).WithTimeout(patience).Should(Succeed())
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("item"), map[string]string{contract.PausedAnnotation: ""})).To(Succeed())
		Eventually(w.getValue(ctx, "item-object")).WithTimeout(patience).Should(Equal("a"))
	}, SpecTimeout(5*time.Minute))

	It("a periodic run writes all objects [Yx3]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = 2 * time.Second
		w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		before := w.Counter.Snapshot()
		Eventually(func() int { _, writes := w.GetRequestCounts(before); return writes }).WithTimeout(patience).Should(BeNumerically(">=", 2))
	}, SpecTimeout(5*time.Minute))

	It("drift starts a run at once [Yx3]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		w.start(build(stategraph.NewBuilder().Add("first", newConfigMap("first", stategraph.ReadyOnceApplied())).Add("second", newConfigMap("second"), "first")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		for _, name := range []string{"item-first", "item-second"} {
			w.updateValue(ctx, name, "by hand")
			Eventually(w.getValue(ctx, name)).WithTimeout(patience).Should(Equal("a"))
		}
	}, SpecTimeout(5*time.Minute))

	It("the operation force-reconcile writes all objects of an item [Y36]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.SetOperation(ctx, w.Key("item"), lsv1alpha1.ForceReconcileOperation)).To(Succeed())
		Eventually(func() int { _, writes := w.GetRequestCounts(before); return writes }).WithTimeout(patience).Should(Equal(1), "all objects are applied, regardless of the watches")
	}, SpecTimeout(5*time.Minute))
})
