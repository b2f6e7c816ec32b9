// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ResultsFile is the file that contains the results of the benchmark. docs/benchmarks.md is generated from it.
const ResultsFile = "results.json"

//go:embed results.json
var resultsFile []byte

// Results contains the results of two sides: Landscaper's deployers and the deployers of this module. The scenarios are
// in the order in which All returns them.
type Results struct {
	Theirs []Result `json:"theirs"`
	Ours   []Result `json:"ours"`
}

// ReadResults returns the last recorded results of the benchmark.
func ReadResults() (Results, error) {
	var r Results
	if err := json.Unmarshal(resultsFile, &r); err != nil {
		return r, fmt.Errorf("%s: %w", ResultsFile, err)
	}
	return r, nil
}

// ListFaults returns an error for each of these faults of the deployers of this module:
//
//   - A scenario fails with the deployers of this module, but not with Landscaper's deployers.
//   - In a scenario in which no item waits, the deployers of this module write deploy items more often than
//     Landscaper's deployers.
//   - In total, the deployers of this module write deploy items at least as often as Landscaper's deployers.
//
// The totals include only scenarios that succeed with both.
func (r Results) ListFaults(scenarios []Scenario) []error {
	var faults []error
	var ours, theirs int
	for i, s := range scenarios {
		o, t := r.Ours[i], r.Theirs[i]
		switch {
		case o.Failure != "" && t.Failure == "":
			faults = append(faults, fmt.Errorf("%s: fails only with our deployers: %s", s.Name, o.Failure))
		case o.Failure != "" || t.Failure != "":
			continue
		case o.ItemWrites > t.ItemWrites && !s.Waits:
			faults = append(faults, fmt.Errorf("%s: %d writes of deploy items, but only %d with Landscaper's deployers", s.Name, o.ItemWrites, t.ItemWrites))
		}
		ours, theirs = ours+o.ItemWrites, theirs+t.ItemWrites
	}
	if ours >= theirs {
		faults = append(faults, fmt.Errorf("%d writes of deploy items in total, want fewer than the %d with Landscaper's deployers", ours, theirs))
	}
	return faults
}

// SumItemWrites adds up the field ItemWrites of the results.
func SumItemWrites(results []Result) int {
	n := 0
	for _, r := range results {
		n += r.ItemWrites
	}
	return n
}

// SumTargetCalls adds up the field TargetCalls of the results.
func SumTargetCalls(results []Result) int {
	n := 0
	for _, r := range results {
		n += r.TargetCalls
	}
	return n
}

// WriteTable writes the results as a table for a terminal.
func (r Results) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\ttheirs: outcome\ts\titem writes\ttarget calls\tours: outcome\ts\titem writes\ttarget calls")
	for i := range r.Ours {
		a, b := r.Theirs[i], r.Ours[i]
		if b.Scenario == "" {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%d\t%d\t%s\t%.1f\t%d\t%d\n", b.Scenario, a.formatOutcome(), a.Seconds, a.ItemWrites, a.TargetCalls, b.formatOutcome(), b.Seconds, b.ItemWrites, b.TargetCalls)
	}
	return t.Flush()
}

// ToMarkdown returns the results as a markdown table. The last row contains the sums over the scenarios that succeed
// both with Landscaper's deployers and with those of this module.
func (r Results) ToMarkdown() string {
	var b strings.Builder
	b.WriteString("| | theirs | s | writes of the item | calls to the target | ours | s | writes of the item | calls to the target |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	var theirs, ours Result
	for i := range r.Ours {
		t, o := r.Theirs[i], r.Ours[i]
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Scenario, t.formatCells(), o.formatCells())
		if t.Failure == "" && o.Failure == "" {
			theirs.add(t)
			ours.add(o)
		}
	}
	fmt.Fprintf(&b, "| **sum where both succeed** | %s | %s |\n", theirs.formatCells(), ours.formatCells())
	return b.String()
}

// add adds the numbers of another result.
func (r *Result) add(other Result) {
	r.Seconds += other.Seconds
	r.ItemWrites += other.ItemWrites
	r.TargetCalls += other.TargetCalls
}

// formatCells returns the cells of a result in a markdown table.
func (r Result) formatCells() string {
	return fmt.Sprintf("%s | %.1f | %d | %d", r.formatOutcome(), r.Seconds, r.ItemWrites, r.TargetCalls)
}

// formatOutcome returns the outcome as a single word.
func (r Result) formatOutcome() string {
	if r.Failure != "" {
		return "fails"
	}
	return "succeeds"
}
