// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// flooded is the time for which the specs of this file trigger an item 50 times a second. In this time, the backoff of
// a failing item allows about six runs: after 0, 0.1, 0.3, 0.7, 1.5 and 3.1 seconds.
const flooded = 4 * time.Second

// mostRuns is the maximum number of runs in this time, with a reserve for a slow machine.
const mostRuns = 8

// setQuickBackoff sets a backoff that starts at 100 ms.
func setQuickBackoff(args *deployerlib.DeployerArgs) {
	args.Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}
}

var _ = Describe("Frequency of runs of a graph deployer", func() {
	for name, tc := range map[string]struct {
		listeners []stategraph.Listener
		job       bool
	}{
		"with Timer(1h)":  {listeners: []stategraph.Listener{stategraph.Timer(time.Hour)}},
		"with Poll(1h)":   {listeners: []stategraph.Listener{stategraph.Poll(time.Hour)}},
		"in a job":        {listeners: []stategraph.Listener{stategraph.Timer(time.Hour)}, job: true},
		"without a timer": {},
	} {
		It("repeats a failed run only after the backoff, although other clients trigger it all the time, "+name+" [F65]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID)
			w.args = setQuickBackoff
			events := make(chan types.NamespacedName)
			probe := newProbe()
			w.start(build(stategraph.NewBuilder().
				Add("count", probe.newExternal(append(tc.listeners, stategraph.Channel(events))...)).
				Add("a", newConfigMap("a", stategraph.WithListeners(tc.listeners...))).
				Add("b", newConfigMap("b", stategraph.ReadyWhen(isThere)))))
			w.runSuccessfully(ctx, "one", settings{Value: "x"})
			w.WaitUntilQuiet(ctx)

			w.SetQuotaExceeded("one-a")
			before, runs := w.Counter.Snapshot(), probe.getCount("one")
			Expect(w.Client.Delete(ctx, w.Read(ctx, "one-a"))).To(Succeed())
			if tc.job {
				_, err := w.Landscaper.Trigger(ctx, w.Key("one"))
				Expect(err).NotTo(HaveOccurred())
			}
			changes := w.UpdateRepeatedly(ctx, "one-b", flooded, func() { events <- w.Key("one") })
			made := probe.getCount("one") - runs
			_, writes := w.GetRequestCounts(before)
			GinkgoWriter.Println(changes, "changes led to", made, "runs and", writes, "writes")
			Expect(made).To(BeNumerically("<=", mostRuns))
			Expect(made).To(BeNumerically(">=", 3))
			Expect(writes).To(BeNumerically("<=", 2*mostRuns))

			By("removing the cause of the failure")
			w.SetQuotaExceeded("")
			Eventually(w.getValue(ctx, "one-a")).WithTimeout(patience).Should(Equal("x"))
		}, SpecTimeout(5*time.Minute))
	}

	It("starts at most one background run per second, and handles the last change [F66]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		probe := newProbe()
		var last string
		seen := make(chan string, 1000)
		w.start(build(stategraph.NewBuilder().
			Add("count", probe.newExternal()).
			Add("b", newConfigMap("b", stategraph.ReadyWhen(func(live *corev1.ConfigMap) (stategraph.Readiness, error) {
				seen <- live.Data["flood"]
				return stategraph.Ready(), nil
			})))))
		w.runSuccessfully(ctx, "one", settings{Value: "x"})
		w.WaitUntilQuiet(ctx)
		runs := probe.getCount("one")
		began := time.Now()
		changes := w.UpdateRepeatedly(ctx, "one-b", flooded, func() {})
		made, most := probe.getCount("one")-runs, int(time.Since(began)/time.Second)+1
		GinkgoWriter.Println(changes, "changes led to", made, "runs")
		Expect(made).To(BeNumerically("<=", most))
		Eventually(func() string {
			for {
				select {
				case last = <-seen:
				default:
					return last
				}
			}
		}).WithTimeout(patience).Should(Equal(w.getFloodValue(ctx, "one-b")))
	}, SpecTimeout(5*time.Minute))

	It("limits the runs of a job that waits while an object changes all the time [F66]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		probe := newProbe()
		w.start(build(stategraph.NewBuilder().Add("count", probe.newExternal()).Add("b", newSignedConfigMap("b"))))
		w.begin(ctx, "one", settings{Value: "x"})
		Eventually(w.getStates(ctx, "one")).WithTimeout(patience).Should(HaveKeyWithValue("b", "Progressing"))
		w.WaitUntilQuiet(ctx)
		runs := probe.getCount("one")
		began := time.Now()
		w.UpdateRepeatedly(ctx, "one-b", flooded, func() {})
		made, most := probe.getCount("one")-runs, 10+int(time.Since(began)/time.Second)+1
		Expect(made).To(BeNumerically("<=", most))
		w.sign(ctx, "one-b", true)
		w.waitUntilSucceeded(ctx, "one")
	}, SpecTimeout(5*time.Minute))
})

// getFloodValue returns the last value that World.UpdateRepeatedly has written.
func (w *env) getFloodValue(ctx context.Context, name string) string {
	GinkgoHelper()
	return w.Read(ctx, name).Data["flood"]
}
