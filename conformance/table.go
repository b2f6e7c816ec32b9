// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/contract"
)

// WriteTable writes the report as text: a line per check with the evidence below it, then the verdict for each row, and
// finally a line per failure.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Conformance of %s: %s\n", r.Subject, r.formatCounts())
	for _, revision := range r.listRevisions() {
		fmt.Fprintf(&b, "\n%s revision\n", revision)
		r.writeRevision(&b, revision)
	}
	r.writeRows(&b)
	r.writeFailures(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (r *Report) formatCounts() string {
	return fmt.Sprintf("%d passed, %d failed, %d not applicable", r.CountOutcome(OutcomePass), r.CountOutcome(OutcomeFail), r.CountOutcome(OutcomeNotApplicable))
}

// listRevisions returns the revisions that have results, in the order in which they ran.
func (r *Report) listRevisions() []contract.Revision {
	var seen []contract.Revision
	for _, result := range r.Results {
		if !slices.Contains(seen, result.Revision) {
			seen = append(seen, result.Revision)
		}
	}
	return seen
}

// writeRevision writes the checks of a revision. If all checks are skipped for the same reason, it writes a single
// line.
func (r *Report) writeRevision(b *strings.Builder, revision contract.Revision) {
	reasons := map[string]int{}
	width, all := 0, 0
	for _, result := range r.Results {
		width = max(width, len(result.Check.Name))
		if result.Revision != revision {
			continue
		}
		all++
		if result.Outcome == OutcomeNotApplicable {
			reasons[result.Evidence]++
		}
	}
	for reason, n := range reasons {
		if n == all && all > 1 {
			fmt.Fprintf(b, "  n/a   all %d checks: %s\n", all, reason)
			return
		}
	}
	for _, result := range r.Results {
		if result.Revision == revision {
			result.write(b, width)
		}
	}
}

// evidence is the indentation of the lines below a check.
const evidence = "              "

// write writes a line with the outcome, duration, name, promise and rows of a check. Below this line, it writes the
// fault and then the rest of the evidence.
func (r Result) write(b *strings.Builder, width int) {
	took := ""
	if r.Outcome != OutcomeNotApplicable {
		took = fmt.Sprintf("%.1fs", r.Took.Seconds())
	}
	fmt.Fprintf(b, "  %-4s  %5s  %-*s  %s\n", r.Outcome, took, width, r.Check.Name, r.Check.SpecName())
	for line := range strings.Lines(r.Fault) {
		fmt.Fprintf(b, "%s ! %s\n", evidence, strings.TrimSpace(line))
	}
	for line := range strings.Lines(strings.TrimSpace(strings.TrimPrefix(r.Evidence, r.Fault))) {
		fmt.Fprintf(b, "%s   %s\n", evidence, strings.TrimSpace(line))
	}
}

// writeRows writes the verdict for each row.
func (r *Report) writeRows(b *strings.Builder) {
	rows := r.ListRows()
	fmt.Fprint(b, "\nrows\n")
	for _, outcome := range []Outcome{OutcomePass, OutcomeNotApplicable} {
		var ids []string
		for _, row := range rows {
			if row.Outcome == outcome {
				ids = append(ids, row.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(b, "  %-4s  %s\n", outcome, strings.Join(ids, " "))
		}
	}
	for _, row := range rows {
		if row.Outcome == OutcomeFail {
			fmt.Fprintf(b, "  %-4s  %-3s  %s\n", row.Outcome, row.ID, strings.Join(row.Failed, ", "))
		}
	}
}

// writeFailures writes one line per failure, with the first line of the fault.
func (r *Report) writeFailures(b *strings.Builder) {
	if r.CountOutcome(OutcomeFail) == 0 {
		fmt.Fprintf(b, "\n%s\n", r.formatCounts())
		return
	}
	fmt.Fprintf(b, "\n%s. Failed:\n", r.formatCounts())
	for _, result := range r.Results {
		if result.Outcome == OutcomeFail {
			first, _, _ := strings.Cut(result.Evidence, "\n")
			fmt.Fprintf(b, "  %s/%s: %s\n", result.Revision, result.Check.Name, first)
		}
	}
}

// Format returns the result as one line: outcome, duration, revision and name.
func (r Result) Format() string {
	return fmt.Sprintf("%-4s  %6s  %s/%s", r.Outcome, r.Took.Round(10*time.Millisecond), r.Revision, r.Check.Name)
}
