// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOtherOutputShowsChangesAsLines(t *testing.T) {
	out := &bytes.Buffer{}
	term := newTerminal(out)
	term.setRows([]row{{name: "a", phase: "Init", job: "job-1"}})
	term.setRows([]row{{name: "a", phase: "Init", job: "job-1", hooks: 7, event: "only this changed"}})
	term.printAbove("a line")
	term.setRows([]row{{name: "a", phase: "Succeeded", job: "job-1, done", hooks: 9, event: "done"}, {name: "b", phase: "(new)"}})
	want := []string{
		"    a            Init            job-1",
		"a line",
		"    a            Succeeded       job-1, done            9  done",
		"    b            (new)",
		"",
	}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("lines: -want, +got:\n%s", diff)
	}
}

func TestTerminalUpdatesTheTableInPlace(t *testing.T) {
	out := &bytes.Buffer{}
	term := newTerminal(out)
	term.size = func() (int, int) { return 34, 25 }
	rows := []row{{name: "a", phase: "Init", event: "long enough to be cut"}}
	term.setRows(rows)
	term.printAbove("a line")
	term.setRows(rows) // unchanged, so that nothing is drawn
	term.setRows([]row{{name: "a", phase: "Succeeded", event: "long enough to be cut"}})
	want := []string{
		"", "NAME         PHASE           JOB…", "a            Init               …",
		"\x1b[3A\x1b[Ja line",
		"", "NAME         PHASE           JOB…", "a            Init               …",
		"\x1b[3A\x1b[J", "NAME         PHASE           JOB…", "a            Succeeded          …",
		"",
	}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("terminal: -want, +got:\n%s", diff)
	}
}

func TestFollowLeavesTheLastTable(t *testing.T) {
	out := &bytes.Buffer{}
	term, table := newTerminal(out), newTable()
	term.size = func() (int, int) { return 80, 25 }
	table.recordObject(newItem("Succeeded"))
	term.startDisplay(t.Context(), table)()
	term.printAbove("below")
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.HasSuffix(got, "Succeeded       generation 2\nbelow\n") {
		t.Errorf("got %q, want the table and then the line", got)
	}
}

func TestTableFitsALowTerminal(t *testing.T) {
	out := &bytes.Buffer{}
	term := newTerminal(out)
	term.size = func() (int, int) { return 80, 3 }
	term.setRows([]row{{name: "a"}, {name: "b"}, {name: "c"}})
	if lines := strings.Count(out.String(), "\n"); lines != 2 || term.printedLines != 2 {
		t.Errorf("drew %d lines and will erase %d, want 2, because the third line is for the cursor", lines, term.printedLines)
	}
}
