// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

var (
	revisions = []contract.Revision{contract.RevisionJobID, contract.RevisionAnnotation}
	faults    = map[contract.Revision][]fault{contract.RevisionJobID: jobFaults, contract.RevisionAnnotation: annotationFaults}
)

var _ = Describe("Deployer that implements the contract", func() {
	for _, revision := range revisions {
		t := startTrial(revision, false, newSubject("good", nil))
		It("passes every check under the "+string(revision)+" revision", func(ctx SpecContext) {
			report := t.waitForReport(ctx)
			Expect(report.Err()).NotTo(HaveOccurred())
			passed := map[string]bool{}
			for _, result := range report.Results {
				passed[result.Check.Name] = result.Outcome == conformance.OutcomePass
			}
			for _, c := range conformance.AllChecks() {
				if c.Revision == "" || c.Revision == revision {
					Expect(passed).To(HaveKeyWithValue(c.Name, true))
				}
			}
		})
	}
})

var _ = Describe("Deployers that violate the contract", func() {
	for _, revision := range revisions {
		for _, f := range faults[revision] {
			s := newSubject(f.name, f.spoil, slices.Concat(f.passes, slices.Collect(maps.Keys(f.fails)))...)
			s.Bounds.Quiet = patience
			t := startTrial(revision, f.waits, s)
			It("the checks detect a deployer that "+f.name+", under the "+string(revision)+" revision", func(ctx SpecContext) {
				report := t.waitForReport(ctx)
				Expect(report.WriteTable(GinkgoWriter)).To(Succeed())
				for _, result := range report.Results {
					want, fails := f.fails[result.Check.Name]
					switch {
					case fails:
						Expect(result.Outcome).To(Equal(conformance.OutcomeFail), result.Check.Name)
						Expect(result.Evidence).To(ContainSubstring(want), result.Check.Name)
					case slices.Contains(f.passes, result.Check.Name):
						Expect(result.Outcome).To(Equal(conformance.OutcomePass), "%s: %s", result.Check.Name, result.Evidence)
					}
				}
			})
		}
	}
})

var _ = Describe("Violations in the table", func() {
	It("each check fails for at least one violation", func() {
		proven := map[string]bool{}
		for _, f := range slices.Concat(jobFaults, annotationFaults) {
			for name := range f.fails {
				proven[name] = true
			}
		}
		for _, c := range conformance.AllChecks() {
			Expect(proven).To(HaveKey(c.Name))
		}
	})
})
