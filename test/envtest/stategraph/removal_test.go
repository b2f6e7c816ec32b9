// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

// setFinalizer adds a finalizer to an object. If on is false, setFinalizer removes the finalizer instead.
func (w *env) setFinalizer(ctx context.Context, obj client.Object, name string, on bool) {
	GinkgoHelper()
	var finalizers any
	if on {
		finalizers = []string{"test.deployerkit.dev/hold"}
	}
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	Expect(w.Client.Patch(ctx, obj, mergePatch(map[string]any{"metadata": map[string]any{"finalizers": finalizers}}))).To(Succeed())
}

// listExisting returns a function for Eventually. Of the given ConfigMaps, this function returns the names of those
// that exist and are not being deleted.
func (w *env) listExisting(ctx context.Context, names ...string) func(Gomega) []string {
	return func(g Gomega) []string {
		out := []string{}
		for _, name := range names {
			cm := &corev1.ConfigMap{}
			if err := w.Client.Get(ctx, w.Key(name), cm); err == nil && cm.DeletionTimestamp == nil {
				out = append(out, name)
			}
		}
		return out
	}
}

// newDeleteRecorder returns an External component. Each call of its function Delete is recorded.
func newDeleteRecorder(done *callRecorder) stategraph.Resource {
	return stategraph.External(stategraph.ExternalSpec{Reconcile: func(context.Context) error { return nil }, Delete: done.record})
}

// newChain returns a builder with one ConfigMap for each name. Each ConfigMap requires the previous ConfigMap.
func newChain(names ...string) *stategraph.Builder {
	b := stategraph.NewBuilder()
	for i, name := range names {
		b.Add(name, newConfigMap(name), names[max(i-1, 0):i]...)
	}
	return b
}

var _ = Describe("Removal", func() {
	It("deletes an item in reverse order and calls the delete functions, even if its configuration is invalid [Yx7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		done := newProbe()
		w.start(build(newChain("first", "second", "third").Add("outside", newDeleteRecorder(done), "second").Add("inside", newDeleteRecorder(done), "outside")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.setFinalizer(ctx, &corev1.ConfigMap{}, "item-third", true)
		Expect(w.Landscaper.Update(ctx, w.Key("item"), newConfig(map[string]any{"unknown": "field"}))).To(Succeed())

		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.condition(ctx, "item")).WithTimeout(patience).Should(And(HavePrefix("False Removing"), ContainSubstring("third: "), ContainSubstring("held by finalizers")))
		Expect(w.listExisting(ctx, "item-first", "item-second", "item-third")(NewGomega(Fail))).To(Equal([]string{"item-first", "item-second"}))
		Consistently(w.listExisting(ctx, "item-first", "item-second")).WithTimeout(time.Second).Should(HaveLen(2))
		Eventually(done.listComponents).WithTimeout(patience).Should(Equal([]string{"inside", "outside"}), "no remaining component requires them")
		w.setFinalizer(ctx, &corev1.ConfigMap{}, "item-third", false)
		ctxGone, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		Expect(w.Landscaper.WaitForDeletion(ctxGone, w.Key("item"))).To(Succeed())
		Expect(w.listExisting(ctx, "item-first", "item-second", "item-third")(NewGomega(Fail))).To(BeEmpty())
		Expect(done.listComponents()).To(HaveLen(2), "once each")
	}, SpecTimeout(5*time.Minute))

	It("deletes components that left the graph in the stored order, after a run without errors [Yx7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.StartWithin = -1
		w.start(build(newChain("zero", "one", "two").Add("stays", newConfigMap("stays"))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()

		By("starting a graph without these components, one component of which fails")
		gate := newGate()
		failing := stategraph.External(stategraph.ExternalSpec{Reconcile: func(ctx context.Context) error {
			if r, err := gate.checkReady(ctx); err != nil || !r.Ready {
				return errors.Join(err, errors.New("not yet"))
			}
			return nil
		}})
		w.setFinalizer(ctx, &corev1.ConfigMap{}, "item-two", true)
		w.start(build(stategraph.NewBuilder().Add("stays", newConfigMap("stays")).Add("failing", failing)))
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("failing", "Failed"))
		Expect(w.listExisting(ctx, "item-zero", "item-one", "item-two")(NewGomega(Fail))).To(HaveLen(3))

		By("letting the component recover")
		gate.set("item", true)
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]string{
			"stays": "Ready", "failing": "Ready", "two": "Removing", "one": "Blocked", "zero": "Blocked",
		}))
		Consistently(w.listExisting(ctx, "item-zero", "item-one")).WithTimeout(500 * time.Millisecond).Should(HaveLen(2))
		w.setFinalizer(ctx, &corev1.ConfigMap{}, "item-two", false)
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]string{"stays": "Ready", "failing": "Ready"}))
		Expect(w.listExisting(ctx, "item-zero", "item-one", "item-two", "item-stays")(NewGomega(Fail))).To(Equal([]string{"item-stays"}))
	}, SpecTimeout(5*time.Minute))

	It("reports a removed component whose delete function the graph does not contain [Yx7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.StartWithin = -1
		done := newProbe()
		w.start(build(stategraph.NewBuilder().Add("outside", newDeleteRecorder(done)).Add("object", newConfigMap("object"), "outside")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.Manager.Stop()
		w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveField("Components", ContainElement(And(
			HaveField("Name", "outside"), HaveField("Reason", ContainSubstring("component outside: the component was removed from the graph, and no function deletes it"))))))
		w.Manager.Stop()
		Expect(done.listComponents()).To(BeEmpty())
		w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object")).AddRemoved("outside", done.record)))
		Eventually(done.listComponents).WithTimeout(patience).Should(Equal([]string{"outside"}))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveField("Undo", BeEmpty()))
		Expect(w.getStates(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]string{"object": "Ready"}))
	}, SpecTimeout(5*time.Minute))
})
