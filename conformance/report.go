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
	Pass          Outcome = "pass"
	Fail          Outcome = "FAIL"
	NotApplicable Outcome = "n/a"
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
	// Seen is the evidence. If the check passed, Seen contains the phases of the items. If the check failed, Seen
	// contains the fault and then the phases of the items. If the check does not apply, Seen contains only the reason.
	Seen string
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

// Failed returns the names of the checks that failed in a revision, in the order in which they ran.
func (r *Report) Failed(revision contract.Revision) []string {
	names := []string{}
	for _, result := range r.Results {
		if result.Outcome == Fail && result.Revision == revision {
			names = append(names, result.Check.Name)
		}
	}
	return names
}

// Count returns the number of checks with the given outcome.
func (r *Report) Count(o Outcome) int {
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
		if result.Outcome == Fail {
			errs = append(errs, fmt.Errorf("%s revision, %s %s: %s", result.Revision, result.Check.Name, result.Check.Rows, result.Seen))
		}
	}
	return errors.Join(errs...)
}

// Row is the verdict for one row of the specification.
type Row struct {
	// ID is the ID of the row, for example C10.
	ID string
	// Outcome is Fail if at least one check of the row failed. Otherwise, it is Pass if at least one check passed. If
	// no check of the row applies, it is NotApplicable.
	Outcome Outcome
	// Failed lists the checks that failed, in the form revision/name.
	Failed []string
}

// Rows returns the verdict for each row that the checks cover, sorted by family and number.
func (r *Report) Rows() []Row {
	byID := map[string]*Row{}
	var rows []*Row
	for _, result := range r.Results {
		for _, id := range result.Check.RowIDs() {
			if byID[id] == nil {
				byID[id] = &Row{ID: id, Outcome: NotApplicable}
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
	case Fail:
		w.Outcome = Fail
		w.Failed = append(w.Failed, fmt.Sprintf("%s/%s", result.Revision, result.Check.Name))
	case Pass:
		if w.Outcome == NotApplicable {
			w.Outcome = Pass
		}
	case NotApplicable:
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
