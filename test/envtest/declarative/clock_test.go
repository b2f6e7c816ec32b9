// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// flooded is the time for which the specs of this file trigger an item 50 times a second. In this time, the backoff of
// a failing item allows about six runs: after 0, 0.1, 0.3, 0.7, 1.5 and 3.1 seconds.
const flooded = 4 * time.Second

// mostRuns is the maximum number of runs in this time, with a reserve for a slow machine.
const mostRuns = 8

var _ = Describe("Frequency of runs of a declarative deployer", func() {
	hour := func(response *declarative.SyncResponse) { response.ResyncAfter = time.Hour }
	none := func(*declarative.SyncResponse) {}
	for name, tc := range map[string]struct {
		change func(*declarative.SyncResponse)
		resync time.Duration
		job    bool
		fails  bool // the handler fails, instead of the target
	}{
		"with Resync":                     {change: none, resync: time.Hour},
		"with ResyncAfter":                {change: hour},
		"without a schedule":              {change: none},
		"in a job":                        {change: hour, resync: time.Hour, job: true},
		"with a failing handler":          {change: hour, resync: time.Hour, fails: true},
		"in a job with a failing handler": {change: none, job: true, fails: true},
	} {
		It("repeats a failed run only after the backoff, although other clients trigger it all the time, "+name+" [F65]", world.Slow, func(ctx SpecContext) {
			var broken atomic.Bool
			handler := newRecordingHandler(declarative.HandlerFunc(func(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
				if broken.Load() {
					return nil, errors.New("the licence server does not respond")
				}
				response, err := handleWithFixedStatus(ctx, req)
				if err == nil {
					tc.change(response)
				}
				return response, err
			}))
			w := newEnv(ctx, configMapKind)
			w.options.Resync = tc.resync
			w.Start(declarative.Args("echo.deployer.example.com", w.Type, handler, w.options))
			w.CreateAndRun(ctx, "item", config(two))
			w.WaitUntilQuiet(ctx)

			broken.Store(tc.fails)
			w.SetQuotaExceeded("a")
			before, calls := w.Counter.Snapshot(), handler.getCallCount("item")()
			Expect(w.Client.Delete(ctx, w.Read(ctx, "a"))).To(Succeed())
			if tc.job {
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
			}
			began := time.Now()
			changes := w.UpdateRepeatedly(ctx, "b", flooded, func() {})
			runs := handler.getCallCount("item")() - calls
			_, writes := w.GetRequestCounts(before)
			GinkgoWriter.Println(changes, "changes led to", runs, "calls and", writes, "writes in", time.Since(began))
			Expect(runs).To(BeNumerically("<=", mostRuns))
			Expect(runs).To(BeNumerically(">=", 3))
			Expect(writes).To(BeNumerically("<=", 2*mostRuns))

			By("removing the cause of the failure")
			broken.Store(false)
			w.SetQuotaExceeded("")
			Eventually(w.Data(ctx, "a")).WithTimeout(patience).ShouldNot(BeNil())
		}, SpecTimeout(5*time.Minute))
	}

	It("repeats a run that fails because the definition of a child was removed only after the backoff [F65]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.options.MinInterval = time.Second
		kind, remove := w.CreateDefinition(ctx)
		w.options.Children = append(w.options.Children, declarative.ChildKind{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind})
		handler := newRecordingHandler(newHandler(configMap("b", data{"key": "1"}), object{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": object{"name": "sample"},
		}))
		w.Start(declarative.Args("echo.deployer.example.com", w.Type, handler, w.options))
		w.CreateAndRun(ctx, "item", config(nil))
		w.WaitUntilQuiet(ctx)
		before, calls := w.Counter.Snapshot(), handler.getCallCount("item")()
		remove()
		changes := w.UpdateRepeatedly(ctx, "b", flooded, func() {})
		runs := handler.getCallCount("item")() - calls
		_, writes := w.GetRequestCounts(before)
		GinkgoWriter.Println(changes, "changes led to", runs, "calls and", writes, "writes")
		Expect(runs).To(BeNumerically("<=", mostRuns))
		Expect(writes).To(BeNumerically("<=", 2*mostRuns))
	}, SpecTimeout(5*time.Minute))

	It("starts at most one background run per second, and handles the last change [F66]", world.Slow, func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w := newEnv(ctx, configMapKind)
		w.options.MinInterval = 0
		w.start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		calls := handler.getCallCount("item")()
		began := time.Now()
		w.UpdateRepeatedly(ctx, "b", flooded, func() {})
		made, most := handler.getCallCount("item")()-calls, int(time.Since(began)/time.Second)+1
		Expect(made).To(BeNumerically("<=", most))
		last := w.Read(ctx, "b").Data["flood"]
		Eventually(func() string {
			child, _ := handler.last("item").Children.Find("ConfigMap", "b")
			return child.GetString("data", "flood")
		}).WithTimeout(patience).Should(Equal(last))
	}, SpecTimeout(5*time.Minute))

	It("writes at most once per second for a handler that increases a number in a child at each call [F66, F75]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.options.MinInterval = 0
		w.start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			child, _ := req.Children.Find("ConfigMap", "a")
			return &declarative.SyncResponse{Children: []any{configMap("a", data{"n": child.GetString("data", "n") + "i"})}}, nil
		}))
		w.CreateAndRun(ctx, "item", config(nil))
		before := w.Counter.Snapshot()
		writes := func() int { _, writes := w.GetRequestCounts(before); return writes }
		Consistently(writes).WithTimeout(flooded).Should(BeNumerically("<=", int(flooded/time.Second)+1))
		Eventually(writes).WithTimeout(patience).Should(BeNumerically(">", int(flooded/time.Second)))
	}, SpecTimeout(5*time.Minute))

	It("raises a ResyncAfter of 1 ns to one second [F67]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(func(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			response, err := handleWithFixedStatus(ctx, req)
			if err == nil {
				response.ResyncAfter = 1
			}
			return response, err
		}))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		calls := handler.getCallCount("item")()
		Consistently(func() int { return handler.getCallCount("item")() - calls }).WithTimeout(3 * time.Second).Should(BeNumerically("<=", 4))
		Eventually(handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">=", calls+3))
	}, SpecTimeout(5*time.Minute))
})
