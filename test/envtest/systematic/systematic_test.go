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
	// sampled is how many trials of each subject are made unless all are asked for.
	sampled = 16
	// seed is that of the sample.
	seed = 1
	// handful is how many points may be out of reach, of all subjects together.
	handful = 5
)

var _ = Describe("a process", func() {
	It("that is killed at any write, or told the past at any read, leaves nothing that its item does not recover from", func(ctx SpecContext) {
		begin := time.Now()
		all, results := subjects(), map[*subject]*result{}
		var trials []trial // those of all subjects, since they are made side by side
		for _, s := range all {
			results[s] = &result{}
			trials = append(trials, survey(ctx, s, results[s])...)
		}
		chosen := choose(trials)
		sweep(ctx, chosen, results)
		Expect(print(GinkgoWriter, all, results)).To(Succeed())
		GinkgoWriter.Printf("%d of %d trials in %s\n", len(chosen), len(trials), time.Since(begin).Round(time.Second))
		var missed, faults []string
		for _, s := range all {
			missed, faults = append(missed, results[s].missed...), append(faults, results[s].faults...)
		}
		GinkgoWriter.Printf("not reached:\n%s\n", strings.Join(missed, "\n"))
		Expect(faults).To(BeEmpty())
		Expect(len(missed)).To(BeNumerically("<=", handful), "points that no fault reached")
	}, SpecTimeout(15*time.Minute))
})

// choose picks the trials that are made.
func choose(trials []trial) []trial {
	GinkgoHelper()
	switch v := os.Getenv("DEPLOYERKIT_SYSTEMATIC"); v {
	case "all":
		return trials
	case "":
		return sample(trials, sampled, seed)
	default:
		n, err := strconv.ParseUint(v, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "DEPLOYERKIT_SYSTEMATIC")
		return sample(trials, sampled, n)
	}
}
