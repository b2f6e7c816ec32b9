// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/deployerkit/deployerkit/test/landscaper/scenario"
)

// atOnce is the number of scenarios that run at the same time. The scenarios need little processor time, because they
// mostly wait.
const atOnce = 8

// outcome is the result of a scenario that runs concurrently with other scenarios.
type outcome struct {
	result scenario.Result
	err    error
}

var _ = Describe("Scenarios of an operator", Ordered, ContinueOnFailure, func() {
	scenarios := append(scenario.All(), scenario.NewRedis(), scenario.NewGalera())
	limits := readLandscaperWrites()
	outcomes := map[string]chan outcome{}
	for _, s := range scenarios {
		outcomes[s.Name] = make(chan outcome, 1)
	}

	BeforeAll(func(ctx SpecContext) {
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		var group errgroup.Group
		group.SetLimit(atOnce)
		go func() {
			for i, s := range scenarios {
				group.Go(func() error {
					result, err := runner.Run(running, s, fmt.Sprintf("ours-%d", i))
					outcomes[s.Name] <- outcome{result, err}
					return nil
				})
			}
		}()
		DeferCleanup(func() error { cancel(); return group.Wait() })
	})

	for i, s := range scenarios {
		It(s.Name, func(ctx SpecContext) {
			select {
			case o := <-outcomes[s.Name]:
				Expect(o.err).NotTo(HaveOccurred())
				addReport(o.result)
				Expect(o.result.Failure).To(BeEmpty())
				if limit, ok := limits[s.Name]; ok && !s.Waits && o.result.ItemWrites > limit {
					// On a busy machine, a run may have to wait, which takes another write.
					again, err := runner.Run(ctx, s, fmt.Sprintf("again-%d", i))
					Expect(err).NotTo(HaveOccurred())
					Expect(again.Failure).To(BeEmpty())
					Expect(again.ItemWrites).To(BeNumerically("<=", limit), "again more writes of deploy items than with Landscaper's own deployers")
				}
			case <-ctx.Done():
				Fail("it did not end in time")
			}
		}, SpecTimeout(0))
	}
})

// addReport adds the steps and the figures of a scenario to the report of the current spec.
func addReport(result scenario.Result) {
	GinkgoHelper()
	for _, step := range result.Steps {
		By(step)
	}
	AddReportEntry("figures", result)
}

// readLandscaperWrites returns how often Landscaper's own deployers write deploy items in each scenario. The keys are
// the names of the scenarios. The numbers are from the recorded benchmark. Scenarios in which these deployers fail are
// omitted.
func readLandscaperWrites() map[string]int {
	results, err := scenario.ReadResults()
	if err != nil {
		panic(err) // specs are still being defined, so there is no spec that could fail
	}
	out := map[string]int{}
	for _, r := range results.Theirs {
		if r.Failure == "" {
			out[r.Scenario] = r.ItemWrites
		}
	}
	return out
}
