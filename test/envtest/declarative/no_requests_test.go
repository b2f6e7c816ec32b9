// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// handleWithFixedStatus is a handler that returns the ConfigMaps in the configuration. Its status is always the same.
func handleWithFixedStatus(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	wanted, err := newConfigMaps(req)
	return &declarative.SyncResponse{Status: object{"ok": true}, Children: wanted}, err
}

// setForeignField changes an object as another controller would: it sets a field that the deployer does not own.
func (w *env) setForeignField(ctx context.Context, name, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"data":{"seen":%q}}`, value)
	cm := w.Read(ctx, name)
	Expect(w.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("other-controller"))).To(Succeed())
}

var two = map[string]map[string]string{"a": {"key": "1"}, "b": {"key": "1"}}

var _ = Describe("Runs without changes", func() {
	It("sends no request to the target and does not write the item when nothing differs [R27, Rx1]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w := newEnv(ctx, configMapKind)
		w.options.Resync = 300 * time.Millisecond
		w.start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)

		By("waiting for background calls")
		before, calls, version := w.Counter.Snapshot(), handler.getCallCount("item")(), w.Get(ctx, "item").ResourceVersion
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">", calls+3))
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(w.Get(ctx, "item").ResourceVersion).To(Equal(version))

		By("running another job")
		w.RunAgain(ctx, "item")
		reads, writes = w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("sends no request when another client writes its own fields a thousand times, and calls the handler at most at its pace [R17, Rh5]", world.Slow, func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		before, calls, item := w.Counter.Snapshot(), handler.getCallCount("item")(), w.Get(ctx, "item")
		started := time.Now()
		for i := range 1000 {
			w.setForeignField(ctx, "a", fmt.Sprint(i))
		}
		Eventually(func() string {
			child, _ := handler.last("item").Children.Find("ConfigMap", "a")
			return child.GetString("data", "seen")
		}).WithTimeout(patience).Should(Equal("999"), "the handler receives the last change")
		took := time.Since(started)
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(cmp.Diff(item, w.Get(ctx, "item"))).To(BeEmpty(), "no write of the item")
		more := handler.getCallCount("item")() - calls
		Expect(more).To(BeNumerically(">", 1))
		Expect(more).To(BeNumerically("<=", int(took/w.options.MinInterval)+1))
		Expect(w.Read(ctx, "a").Data).To(Equal(data{"key": "1", "seen": "999"}))
	}, SpecTimeout(5*time.Minute))

	It("calls the handler when a field of a child changes, and updates the status of the item [R7, R8]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		di := w.CreateAndRun(ctx, "item", config(two))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{"a": "", "b": ""}))
		w.setForeignField(ctx, "b", "here")
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{"a": "", "b": "here"}))
		Expect(w.status(ctx, "item")(NewGomega(Fail))).To(HaveKeyWithValue("observedGeneration", BeEquivalentTo(di.Generation)))
		Expect(w.Get(ctx, "item").Status.JobIDFinished).To(Equal(di.Status.JobIDFinished), "no job was needed")
	}, SpecTimeout(5*time.Minute))

	It("calls the handler again after the time that its response requests [Rx10]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(func(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			response, err := handleWithFixedStatus(ctx, req)
			response.ResyncAfter = 300 * time.Millisecond
			return response, err
		}))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		calls, started := handler.getCallCount("item")(), time.Now()
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">=", calls+4))
		Expect(time.Since(started)).To(BeNumerically(">", 600*time.Millisecond), "the handler is not called in a hot loop")
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Registered schedules", func() {
	It("runs an item on a schedule that the author registers, also when nothing differs [R27]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w := newEnv(ctx, configMapKind)
		everySecond := func(_ context.Context, last time.Time, _ *lsv1alpha1.DeployItem) (*time.Time, error) {
			return new(last.Add(time.Second)), nil
		}
		w.start(handler, continuousreconcile.ContinuousReconcileExtensionSetup(everySecond))
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		calls, last := handler.getCallCount("item")(), w.Get(ctx, "item").Status.LastReconcileTime
		Consistently(handler.getCallCount("item")).WithTimeout(3 * time.Second).Should(BeNumerically("<=", calls+5))
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">", calls))
		Eventually(func() bool { return w.Get(ctx, "item").Status.LastReconcileTime.After(last.Time) }).WithTimeout(patience).Should(BeTrue())
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Jobs of a declarative deployer", func() {
	It("a job continues until the handler no longer waits, and a change of a child continues it at once [R8]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(func(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			response, err := handleWithCounts(ctx, req)
			if child, _ := req.Children.Find("ConfigMap", "a"); child.GetString("data", "seen") == "" {
				response.Wait = "a is not ready"
			}
			return response, err
		}))
		w := newEnv(ctx, configMapKind).start(handler)
		w.Create(ctx, "item", config(two))
		Eventually(w.Condition(ctx, "item", "Waiting")).WithTimeout(patience).Should(HaveValue(HaveField("Message", ContainSubstring("a is not ready"))))
		Expect(w.Get(ctx, "item").Status.Phase).To(Equal(phases.Progressing))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).ShouldNot(BeNil(), "children do not wait")
		w.WaitUntilQuiet(ctx)
		calls := handler.getCallCount("item")()
		Consistently(handler.getCallCount("item")).WithTimeout(time.Second).Should(Equal(calls), "nothing changed")
		w.setForeignField(ctx, "a", "ready")
		Eventually(func() any { return w.Get(ctx, "item").Status.Phase }).WithTimeout(testtime.ScaleTimeout(5 * time.Second)).Should(Equal(phases.Succeeded))

		By("changing the child after the end of the job, which does not change the phase")
		w.setForeignField(ctx, "a", "")
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{"a": "", "b": ""}))
		di := w.Get(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(di.Status.Conditions).NotTo(ContainElement(HaveField("Type", BeEquivalentTo("Waiting"))))
		owed := And(HaveField("Type", contract.ConditionBackground), HaveField("Status", lsv1alpha1.ConditionTrue))
		Consistently(func() []lsv1alpha1.Condition { return w.Get(ctx, "item").Status.Conditions }).NotTo(ContainElement(owed), "it waits for nothing")
	}, SpecTimeout(5*time.Minute))
})
