// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/contract"
)

// Outcome is the outcome of a check.
type Outcome string

// These are the outcomes of a check.
const (
	OutcomePass          Outcome = "pass"
	OutcomeFail          Outcome = "FAIL"
	OutcomeNotApplicable Outcome = "n/a"
)

// Result is the result of a check under one revision.
type Result struct {
	// Check is the check that ran.
	Check Check
	// Revision is the revision of the contract under which the check ran.
	Revision contract.Revision
	// Outcome is pass, fail or not applicable.
	Outcome Outcome
	// Fault describes what is wrong. It is empty unless the check failed.
	Fault string
	// Evidence contains the phases of the items if the check passed or failed. If the check failed, they follow the fault.
	// If the check does not apply, Evidence contains only the reason.
	Evidence string
	// Took is the duration of the check.
	Took time.Duration
}

// Report contains the results of all checks of a subject, in the order in which they ran.
type Report struct {
	// Subject is the name of the subject.
	Subject string
	// Results contains one result for each check and revision.
	Results []Result
}

// ListFailed returns the names of the checks that failed in a revision, in the order in which they ran.
func (r *Report) ListFailed(revision contract.Revision) []string {
	names := []string{}
	for _, result := range r.Results {
		if result.Outcome == OutcomeFail && result.Revision == revision {
			names = append(names, result.Check.Name)
		}
	}
	return names
}

// CountOutcome returns the number of checks with the given outcome.
func (r *Report) CountOutcome(o Outcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// Err returns an error that lists all failed checks, or nil if none failed.
func (r *Report) Err() error {
	var errs []error
	for _, result := range r.Results {
		if result.Outcome == OutcomeFail {
			errs = append(errs, fmt.Errorf("%s revision, %s %s: %s", result.Revision, result.Check.Name, result.Check.Rows, result.Evidence))
		}
	}
	return errors.Join(errs...)
}

// Row is the verdict for one promise of docs/behaviours.md.
type Row struct {
	// ID is the ID of the row, for example C10.
	ID string
	// Outcome is OutcomeFail if at least one check of the row failed. Otherwise, it is OutcomePass if at least one check
	// passed. If no check of the row applies, it is OutcomeNotApplicable.
	Outcome Outcome
	// Failed lists the checks that failed, in the form revision/name.
	Failed []string
}

// ListRows returns the verdict for each row that the checks cover, sorted by family and number.
func (r *Report) ListRows() []Row {
	byID := map[string]*Row{}
	var rows []*Row
	for _, result := range r.Results {
		for _, id := range result.Check.ListRows() {
			if byID[id] == nil {
				byID[id] = &Row{ID: id, Outcome: OutcomeNotApplicable}
				rows = append(rows, byID[id])
			}
			byID[id].add(result)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int { return compareIDs(a.ID, b.ID) })
	sorted := make([]Row, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	return sorted
}

func (w *Row) add(result Result) {
	switch result.Outcome {
	case OutcomeFail:
		w.Outcome = OutcomeFail
		w.Failed = append(w.Failed, fmt.Sprintf("%s/%s", result.Revision, result.Check.Name))
	case OutcomePass:
		if w.Outcome == OutcomeNotApplicable {
			w.Outcome = OutcomePass
		}
	case OutcomeNotApplicable:
	}
}

// compareIDs orders IDs by family and number, so that C2 precedes C10.
func compareIDs(a, b string) int {
	familyA, familyB := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if familyA != familyB {
		return strings.Compare(familyA, familyB)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
