// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/xml"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

// check returns the check with the given name.
func check(t *testing.T, name string) conformance.Check {
	t.Helper()
	for _, c := range conformance.AllChecks() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return conformance.Check{}
}

// newReport returns a report with a passed, a failed and a skipped check.
func newReport(t *testing.T) *conformance.Report {
	t.Helper()
	return &conformance.Report{Subject: "sample", Results: []conformance.Result{
		{Check: check(t, "succeeds"), Revision: contract.RevisionJobID, Outcome: conformance.OutcomePass, Evidence: "valid: Init > Succeeded (4 versions)", Took: 1500 * time.Millisecond},
		{Check: check(t, "deployer"), Revision: contract.RevisionJobID, Outcome: conformance.OutcomeFail, Fault: "status.deployer is {}", Evidence: "status.deployer is {}\nvalid: Succeeded (2 versions)", Took: 61 * time.Millisecond},
		{Check: check(t, "uninstall"), Revision: contract.RevisionJobID, Outcome: conformance.OutcomeNotApplicable, Evidence: "the subject cannot report whether objects are deployed"},
		{Check: check(t, "succeeds"), Revision: contract.RevisionAnnotation, Outcome: conformance.OutcomeFail, Fault: "a valid item ended as \"Failed\"", Evidence: "a valid item ended as \"Failed\""},
	}}
}

func TestWriteTable(t *testing.T) {
	var got strings.Builder
	if err := newReport(t).WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	want := `Conformance of sample: 1 passed, 2 failed, 1 not applicable

job-id revision
  pass   1.5s  succeeds   a valid item ends as Succeeded, without an error [C10, L34]
                 valid: Init > Succeeded (4 versions)
  FAIL   0.1s  deployer   status.deployer has name, identity and version [C11]
               ! status.deployer is {}
                 valid: Succeeded (2 versions)
  n/a          uninstall  an item is removed only after its deployed objects [C13, L33]
                 the subject cannot report whether objects are deployed

annotation revision
  FAIL   0.0s  succeeds   a valid item ends as Succeeded, without an error [C10, L34]
               ! a valid item ended as "Failed"

rows
  n/a   C13 L33
  FAIL  C10  annotation/succeeds
  FAIL  C11  job-id/deployer
  FAIL  L34  annotation/succeeds

1 passed, 2 failed, 1 not applicable. Failed:
  job-id/deployer: status.deployer is {}
  annotation/succeeds: a valid item ended as "Failed"
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("WriteTable(...): -want, +got:\n%s", diff)
	}
}

func TestWriteTableShowsInapplicableRevisionInOneLine(t *testing.T) {
	r := &conformance.Report{Subject: "sample"}
	for _, name := range []string{"succeeds", "deployer"} {
		r.Results = append(r.Results, conformance.Result{
			Check: check(t, name), Revision: contract.RevisionAnnotation, Outcome: conformance.OutcomeNotApplicable, Evidence: "another revision",
		})
	}
	var got strings.Builder
	if err := r.WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	want := `Conformance of sample: 0 passed, 0 failed, 2 not applicable

annotation revision
  n/a   all 2 checks: another revision

rows
  n/a   C10 C11 L34

0 passed, 0 failed, 2 not applicable
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("WriteTable(...): -want, +got:\n%s", diff)
	}
}

func TestLine(t *testing.T) {
	if got, want := newReport(t).Results[0].Format(), "pass    1.5s  job-id/succeeds"; got != want {
		t.Errorf("Line(): want %q, got %q", want, got)
	}
}

func TestWriteJUnit(t *testing.T) {
	var got strings.Builder
	if err := newReport(t).WriteJUnit(&got); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(got.String()), new(struct{})); err != nil {
		t.Errorf("WriteJUnit(...): no XML: %v", err)
	}
	for _, want := range []string{
		`<testsuite name="sample.job-id" tests="3" failures="1" skipped="1">`,
		`<testsuite name="sample.annotation" tests="1" failures="1" skipped="0">`,
		`<testcase classname="sample.job-id" name="a valid item ends as Succeeded, without an error [C10, L34]" time="1.500">`,
		`<failure message="status.deployer has name, identity and version">status.deployer is {}`,
		`<skipped message="the subject cannot report whether objects are deployed"></skipped>`,
		`<system-out>valid: Init &gt; Succeeded (4 versions)</system-out>`,
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("WriteJUnit(...): want %s in\n%s", want, got.String())
		}
	}
}

// full is a writer that always fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestReportReturnsWriteErrors(t *testing.T) {
	if err := newReport(t).WriteTable(full{}); !errors.Is(err, errFull) {
		t.Errorf("WriteTable(...): want %v, got %v", errFull, err)
	}
	if err := newReport(t).WriteJUnit(full{}); !errors.Is(err, errFull) {
		t.Errorf("WriteJUnit(...): want %v, got %v", errFull, err)
	}
}

func TestFailed(t *testing.T) {
	r := newReport(t)
	if diff := cmp.Diff([]string{"deployer"}, r.ListFailed(contract.RevisionJobID)); diff != "" {
		t.Errorf("Failed(job-id): -want, +got:\n%s", diff)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "annotation revision, succeeds [C10, L34]: a valid item ended") {
		t.Errorf("Err(): got %v", err)
	}
	if err := (&conformance.Report{Results: r.Results[:1]}).Err(); err != nil {
		t.Errorf("Err() without failures: got %v", err)
	}
}

func TestRows(t *testing.T) {
	got := newReport(t).ListRows()
	want := []conformance.Row{
		{ID: "C10", Outcome: conformance.OutcomeFail, Failed: []string{"annotation/succeeds"}},
		{ID: "C11", Outcome: conformance.OutcomeFail, Failed: []string{"job-id/deployer"}},
		{ID: "C13", Outcome: conformance.OutcomeNotApplicable},
		{ID: "L33", Outcome: conformance.OutcomeNotApplicable},
		{ID: "L34", Outcome: conformance.OutcomeFail, Failed: []string{"annotation/succeeds"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Rows(): -want, +got:\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	rows := regexp.MustCompile(`^\[(C|L|Lx)\d+(, (C|L|Lx)\d+)*\]$`)
	names, covered := map[string]bool{}, map[string]bool{}
	for _, c := range conformance.AllChecks() {
		if c.Name == "" || names[c.Name] {
			t.Errorf("check %q: the name is empty or not unique", c.Name)
		}
		names[c.Name] = true
		if !rows.MatchString(c.Rows) || c.Promise == "" || strings.ContainsAny(c.Promise, "[]\n") {
			t.Errorf("check %q: want rows in brackets and a promise in one line, got %q, %q", c.Name, c.Rows, c.Promise)
		}
		for _, id := range c.ListRows() {
			covered[id] = true
		}
		if c.SpecName() != c.Promise+" "+c.Rows {
			t.Errorf("check %q: Title() = %q", c.Name, c.SpecName())
		}
	}
	for _, id := range []string{"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14", "C15"} {
		if !covered[id] {
			t.Errorf("no check covers row %s", id)
		}
	}
}
