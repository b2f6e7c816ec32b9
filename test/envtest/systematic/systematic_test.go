// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// sampled is the number of trials of each subject in a sample.
	sampled = 14
	// seed selects the default sample.
	seed = 1
	// unreachable is the number of points of a subject that may remain unreached. The test reports these points.
	unreachable = 2
)

// The following specs form TestSystematic: one spec for each deployer, and a last spec that prints a table.
var _ = Describe("Systematic kills and stale reads", Ordered, ContinueOnFailure, func() {
	var results []*result
	AfterAll(func() { Expect(printTable(os.Stdout, results)).To(Succeed()) })
	for _, s := range newSubjects() {
		It("the item of each subject recovers from a kill at any write and from a stale read at any read: "+s.name, func(ctx SpecContext) {
			r := &result{subject: s, begin: time.Now()}
			results = append(results, r)
			trials := r.runWithoutFaults(ctx)
			Expect(r.faults).To(BeEmpty(), "nothing went wrong yet")
			r.runTrials(ctx, selectTrials(trials))
			GinkgoWriter.Printf("%s: not reached:\n%s\n", s.name, strings.Join(r.missed, "\n"))
			Expect(r.faults).To(BeEmpty())
			Expect(len(r.missed)).To(BeNumerically("<=", unreachable), "points that were not reached: %v", r.missed)
		}, SpecTimeout(10*time.Minute))
	}
})

// selectTrials returns the trials that the suite runs.
func selectTrials(trials []trial) []trial {
	GinkgoHelper()
	switch v := os.Getenv("DEPLOYERKIT_SYSTEMATIC"); v {
	case "all":
		return trials
	case "":
		return selectRandom(trials, sampled, seed)
	default:
		n, err := strconv.ParseUint(v, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "DEPLOYERKIT_SYSTEMATIC")
		return selectRandom(trials, sampled, n)
	}
}
