// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
)

// Run holds subjects to the contract: a spec per check and revision, with the rows in its name, so that -ginkgo.focus
// selects. At the end it writes the report of each subject to Subject.Report and Subject.JUnit. Ginkgo runs its specs
// once per test binary, so call it once; specs of the caller's package run with it.
func Run(t *testing.T, subjects ...Subject) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	for _, s := range subjects {
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		Specs(s)
	}
	ginkgo.RunSpecs(t, "conformance")
}

// Specs adds the specs of a subject, which has to be valid, to a suite that the caller runs. Call it where containers may
// be made: in a variable of the package, or before RunSpecs.
func Specs(s Subject) bool {
	if s.Logs == nil {
		s.Logs = ginkgo.GinkgoWriter
	}
	if s.Report == nil {
		s.Report = os.Stdout
	}
	s = s.withDefaults()
	report := &Report{Subject: s.Name}
	return ginkgo.Describe("conformance of "+s.Name, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for _, revision := range s.Revisions {
			ginkgo.Describe(fmt.Sprintf("under the %s revision", revision), func() { specsOf(s, revision, report) })
		}
		ginkgo.AfterAll(func() { gomega.Expect(write(report, s)).To(gomega.Succeed()) })
	})
}

// specsOf makes the specs of one revision.
func specsOf(s Subject, revision contract.Revision, report *Report) {
	var st *stage
	ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
		var err error
		st, err = open(ctx, s, revision)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
	})
	ginkgo.AfterAll(func() {
		if st != nil {
			gomega.Expect(st.close()).To(gomega.Succeed())
		}
	})
	for _, c := range Checks() {
		if c.Revision != "" && c.Revision != revision {
			continue
		}
		ginkgo.It(c.Title(), func(ctx ginkgo.SpecContext) {
			result := st.check(ctx, c)
			report.Results = append(report.Results, result)
			ginkgo.AddReportEntry(string(result.Outcome), result.Seen, ginkgo.ReportEntryVisibilityFailureOrVerbose)
			if result.Outcome == Fail {
				ginkgo.Fail(result.Seen)
			}
		})
	}
}

// write writes the report wherever the subject wants it.
func write(report *Report, s Subject) error {
	err := report.WriteTable(s.Report)
	if s.JUnit == "" {
		return err
	}
	file, fault := os.Create(s.JUnit)
	if fault != nil {
		return errors.Join(err, fmt.Errorf("write JUnit report: %w", fault))
	}
	return errors.Join(err, report.WriteJUnit(file), file.Close())
}
