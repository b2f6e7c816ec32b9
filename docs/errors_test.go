// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/docs/internal/errortable"
)

var updateErrors = flag.Bool("errors.update", false, "write the table of errors.md anew; the columns for people are kept")

// TestErrorTableMatchesCode compares the table of errors.md with the code. The last two columns are written by hand,
// and each row needs both.
func TestErrorTableMatchesCode(t *testing.T) {
	found, err := errortable.Find("..", "contract", "extension", "deployerlib", "deployermain", "targets", "apply", "managed",
		"declarative", "stategraph", "deployers")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	const header = "| Reason | Operation | Codes | Message | Cause | What to do |\n|---|---|---|---|---|---|\n"
	before, table, ok := strings.Cut(string(raw), header)
	if !ok {
		t.Fatal("errors.md has no table of reasons")
	}
	explained := readExplanations(table)
	var want strings.Builder
	for _, e := range found {
		cells := e.ListCells()
		people, ok := explained[[2]string{cells[0], cells[1]}]
		if !ok || people[0] == "" || people[1] == "" {
			t.Errorf("errors.md does not explain %s of %s: run the test with -errors.update and fill in the row", cells[0], cells[1])
		}
		want.WriteString("| " + strings.Join(append(cells, people[:]...), " | ") + " |\n")
		for _, code := range e.Codes {
			if !strings.Contains(before, "| `"+code+"` |") {
				t.Errorf("errors.md does not explain the code %s", code)
			}
		}
	}
	if *updateErrors {
		if err := os.WriteFile("errors.md", []byte(before+header+want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("errors.md: -code +table (-errors.update writes it anew):\n%s", diff)
	}
}

// readExplanations returns the columns "Cause" and "What to do" of the table. The keys consist of the reason and the
// operation.
func readExplanations(table string) map[[2]string][2]string {
	out := map[[2]string][2]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if n := len(cells); n >= 6 {
			out[[2]string{strings.TrimSpace(cells[0]), cells[1]}] = [2]string{strings.TrimSpace(cells[n-2]), strings.TrimSpace(cells[n-1])}
		}
	}
	return out
}
