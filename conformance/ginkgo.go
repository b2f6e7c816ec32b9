// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
)

// Run checks subjects against the contract. It creates a spec per check and revision. The name of a spec contains the
// IDs of the promises in docs/behaviours.md that the check covers, so that -ginkgo.focus can select specs by ID. At the
// end it writes the report of each subject to Options.Report and Options.JUnit. Ginkgo runs all specs of a test binary
// together, including the specs of the caller's package, and can do so only once. Therefore, call Run only once.
func Run(t *testing.T, subjects ...Subject) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	for _, s := range subjects {
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		describeSubject(s)
	}
	ginkgo.RunSpecs(t, "conformance")
}

// describeSubject defines the specs of a valid subject. Ginkgo allows that only in a package-level variable or before
// RunSpecs.
func describeSubject(s Subject) bool {
	if s.Logs == nil {
		s.Logs = ginkgo.GinkgoWriter
	}
	if s.Report == nil {
		s.Report = os.Stdout
	}
	s = s.withDefaults()
	report := &Report{Subject: s.Name}
	suites := make([]*suite, len(s.Revisions))
	return ginkgo.Describe("conformance of "+s.Name, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
			for i, revision := range s.Revisions {
				if s.SideBySide && !hasFilter() {
					suites[i] = startSuite(context.WithoutCancel(ctx), s, revision)
				}
			}
		})
		for i, revision := range s.Revisions {
			ginkgo.Describe(fmt.Sprintf("under the %s revision", revision), func() { describeRevision(s, revision, &suites[i], report) })
		}
		ginkgo.AfterAll(func() { gomega.Expect(write(report, s)).To(gomega.Succeed()) })
	})
}

// hasFilter reports whether Ginkgo runs only some of the specs. In that case, each check runs as part of its spec.
// Otherwise, a suite runs all checks in the background.
func hasFilter() bool {
	c, _ := ginkgo.GinkgoConfiguration()
	return len(c.FocusStrings)+len(c.SkipStrings)+len(c.FocusFiles)+len(c.SkipFiles) > 0 || c.LabelFilter != ""
}

// describeRevision defines the specs of one revision. While a suite of the revision is running, under points to it, and
// otherwise to nil.
func describeRevision(s Subject, revision contract.Revision, under **suite, report *Report) {
	var result func(context.Context, Check) (Result, error)
	ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
		if hasFilter() {
			e, err := openEnv(ctx, s, revision)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			ginkgo.DeferCleanup(e.close)
			result = func(ctx context.Context, c Check) (Result, error) {
				seen := e.check(ctx, c)
				s.Observe(seen)
				return seen, ctx.Err()
			}
			return
		}
		if *under == nil {
			*under = startSuite(context.WithoutCancel(ctx), s, revision)
		}
		ginkgo.DeferCleanup((*under).stop)
		result = (*under).result
	})
	for _, c := range s.listChecks(revision) {
		ginkgo.It(c.SpecName(), func(ctx ginkgo.SpecContext) {
			seen, err := result(ctx, c)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			report.Results = append(report.Results, seen)
			ginkgo.AddReportEntry(string(seen.Outcome), seen.Evidence, ginkgo.ReportEntryVisibilityFailureOrVerbose)
			if seen.Outcome == OutcomeFail {
				ginkgo.Fail(seen.Evidence)
			}
		})
	}
}

// write writes the report to the outputs that the subject configures.
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
