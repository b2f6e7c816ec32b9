// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/faultnet"
)

// failingHandler is a handler that returns the error in the field `broken` if it is set. Otherwise, it works like the
// handler `handleWithCounts`.
type failingHandler struct {
	broken atomic.Value // the error that the handler returns
	panics atomic.Bool
}

// Sync implements declarative.Handler.
func (f *failingHandler) Sync(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	if f.panics.Load() {
		panic("the handler has a bug")
	}
	if err, _ := f.broken.Load().(error); err != nil && err.Error() != "" {
		return nil, err
	}
	return handleWithCounts(ctx, req)
}

// sumMetric adds up the values of a metric of the deployer over all series with the given label values. It also returns
// the number of these series.
func (w *env) sumMetric(name string, values ...string) (sum float64, series int) {
	GinkgoHelper()
	families, err := w.Manager.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			got := []string{}
			for _, label := range one.GetLabel() {
				got = append(got, label.GetValue())
			}
			if ok, _ := ContainElements(values).Match(got); ok || len(values) == 0 {
				sum, series = sum+one.GetCounter().GetValue(), series+1
			}
		}
	}
	return sum, series
}

const itemErrors = "deployerkit_declarative_item_errors_total"

var _ = Describe("Failing handlers", func() {
	It("an error of the handler is reported and counted, changes no child and no provider status, and is retried with a backoff [R20, R21, R22, R23, Rx8, Rx11]", func(ctx SpecContext) {
		inner := &failingHandler{}
		handler := newRecordingHandler(inner)
		w := newEnv(ctx, configMapKind)
		w.options.ItemMetrics = true
		w.start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", HaveLen(2)))
		w.WaitUntilQuiet(ctx)
		_, series := w.sumMetric(itemErrors)
		Expect(series).To(BeZero())

		before, calls := w.Counter.Snapshot(), handler.getCallCount("item")()
		stored := w.Get(ctx, "item").Status.ProviderStatus.Raw
		inner.broken.Store(errors.New("the moon is in the wrong place"))
		Expect(w.Landscaper.Update(ctx, w.Key("item"), config(map[string]map[string]string{"c": {"key": "3"}}))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">=", calls+5))
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		di := w.Get(ctx, "item")
		Expect(di.Status.ProviderStatus.Raw).To(MatchJSON(stored))
		Expect(di.Status.LastError).To(HaveValue(HaveField("Message", ContainSubstring("the moon is in the wrong place"))))
		Expect(di.Status.Phase.IsFinal()).To(BeFalse())
		times := handler.getStartTimes("item")[calls:]
		Expect(times[3].Sub(times[2])).To(BeNumerically(">", times[1].Sub(times[0])), "the second wait is longer")
		sum, _ := w.sumMetric(itemErrors, w.Namespace, "item")
		Expect(sum).To(BeNumerically(">=", 4))
		sum, _ = w.sumMetric("deployerkit_declarative_calls_total", "sync", "error")
		Expect(sum).To(BeNumerically(">=", 4))

		By("letting the handler succeed")
		inner.broken.Store(errors.New(""))
		Eventually(w.Data(ctx, "c")).WithTimeout(patience).ShouldNot(BeNil())
		Eventually(func() any { return w.Get(ctx, "item").Status.Phase }).WithTimeout(patience).Should(Equal(phases.Succeeded))
		Expect(w.Get(ctx, "item").Status.LastError).To(BeNil())

		By("deleting the item, which removes its metric")
		w.Delete(ctx, "item")
		Eventually(func() int { _, series := w.sumMetric(itemErrors); return series }).WithTimeout(patience).Should(BeZero())
	}, SpecTimeout(5*time.Minute))

	It("the metric per item exists only if the options enable it [R22]", func(ctx SpecContext) {
		inner := &failingHandler{}
		inner.broken.Store(errors.New("no"))
		handler := newRecordingHandler(inner)
		w := newEnv(ctx, configMapKind).start(handler)
		w.Create(ctx, "item", config(two))
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">", 1))
		_, series := w.sumMetric(itemErrors)
		Expect(series).To(BeZero())
	}, SpecTimeout(5*time.Minute))

	It("a panic of the handler fails its item and no other item [Rx7]", func(ctx SpecContext) {
		inner := &failingHandler{}
		handler := newRecordingHandler(declarative.HandlerFunc(func(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			if req.Item.Name == "bad" {
				return inner.Sync(ctx, req)
			}
			return handleWithCounts(ctx, req)
		}))
		inner.panics.Store(true)
		w := newEnv(ctx, configMapKind).start(handler)
		w.Create(ctx, "bad", config(map[string]map[string]string{"bad": {"key": "1"}}))
		Eventually(func() any { return w.Get(ctx, "bad").Status.LastError }).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", ContainSubstring("the handler has a bug"))))
		Expect(w.CreateAndRun(ctx, "good", config(two)).Status.Phase).To(Equal(phases.Succeeded))
		sum, _ := w.sumMetric("deployerkit_declarative_calls_total", "sync", "error")
		Expect(sum).To(BeNumerically(">=", 1), "a panic counts as a failed call")
		inner.panics.Store(false)
		if w.Get(ctx, "bad").Status.Phase.IsFinal() {
			w.RunAgain(ctx, "bad")
		}
		Eventually(w.Data(ctx, "bad")).WithTimeout(patience).ShouldNot(BeNil())
	}, SpecTimeout(5*time.Minute))
})

// emptyInventory is the provider status of an item that never had children.
const emptyInventory = `{"apiVersion":"declarative.deployerkit.dev/v1alpha1","kind":"ProviderStatus","deployerkit":{"inventory":{"empty":true}}}`

// newHandler returns a handler that returns the given children for each item.
func newHandler(children ...any) declarative.HandlerFunc {
	return func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		return &declarative.SyncResponse{Children: children}, nil
	}
}

var _ = Describe("Invalid children", func() {
	DescribeTable("writes nothing and reports an error if the handler returns a child",
		func(ctx SpecContext, want string, child object) {
			w := newEnv(ctx, configMapKind).start(newHandler(configMap("first", nil), child))
			w.Create(ctx, "item", config(nil))
			Eventually(func() any { return w.Get(ctx, "item").Status.LastError }).WithTimeout(patience).Should(
				HaveValue(HaveField("Message", ContainSubstring(want))))
			_, writes := w.GetRequestCounts(nil)
			Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot())
			Expect(w.Get(ctx, "item").Status.ProviderStatus.Raw).To(MatchJSON(emptyInventory))
			Expect(w.Read(ctx, "first")).To(BeNil())
		},
		Entry("of a kind that is not configured [Rx4]", "Secret", object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "a"}, "data": object{}}),
		Entry("with a status [R19]", "status", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a"}, "status": object{"a": "b"}}),
		Entry("with fields that only the API server sets [R18]", "resourceVersion", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "resourceVersion": "5"}, "data": object{}}),
		Entry("in another namespace [R30]", "kube-system", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": "kube-system"}, "data": object{}}),
	)
})

var _ = Describe("Invalid statuses", func() {
	DescribeTable("writes nothing and reports an error with the reason if the handler returns a status",
		func(ctx SpecContext, want string, status any) {
			w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
				return &declarative.SyncResponse{Status: status, Children: []any{configMap("first", nil)}}, nil
			}))
			w.Create(ctx, "item", config(nil))
			Eventually(func() any { return w.Get(ctx, "item").Status.LastError }).WithTimeout(patience).Should(
				HaveValue(HaveField("Message", ContainSubstring(want))))
			_, writes := w.GetRequestCounts(nil)
			Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot())
			Expect(w.Get(ctx, "item").Status.ProviderStatus.Raw).To(MatchJSON(emptyInventory))
		},
		Entry("that is not an object [R12]", "not a JSON object", []string{"a"}),
		Entry("that is too large [R12]", "1048576", object{"a": strings.Repeat("a", 1<<20)}),
		Entry("that contains a reserved field [R12]", "deployerkit", object{"deployerkit": object{}}),
	)
})

var _ = Describe("Order of children", func() {
	It("applies children in the order of the response, and continues after a child that fails [Rx2]", func(ctx SpecContext) {
		bad := configMap("m-bad", data{"key": "1"})
		bad["data"] = object{"not a key!": "x"}
		first := object{ // an object that belongs to an earlier stage
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": "bad"}, "rules": []any{object{"verbs": []any{}}},
		}
		clusterRole := declarative.ChildKind{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}
		w := newEnv(ctx, configMapKind, clusterRole).start(newHandler(first, configMap("z", data{"key": "1"}), bad, configMap("a", data{"key": "1"}), configMap("q", data{"key": "1"})))
		order := &patchRecorder{}
		w.Counter.SetInjector(faultnet.When(order.record, nil))
		w.Create(ctx, "item", config(nil))
		Eventually(func() any { return w.Get(ctx, "item").Status.LastError }).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", And(ContainSubstring("m-bad"), ContainSubstring("ClusterRole.rbac.authorization.k8s.io bad")))))
		for _, name := range []string{"z", "a", "q"} {
			Expect(w.Read(ctx, name)).NotTo(BeNil(), name)
		}
		Expect(order.list()[:5]).To(Equal([]string{"bad", "z", "m-bad", "a", "q"}))
	}, SpecTimeout(5*time.Minute))
})

// patchRecorder records the names of the objects that are written to the target, in order.
type patchRecorder struct {
	mu    sync.Mutex
	names []string
}

func (l *patchRecorder) record(r faultnet.Request) bool {
	if r.Verb == "patch" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.names = append(l.names, r.Name)
	}
	return false
}

func (l *patchRecorder) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.names)
}
