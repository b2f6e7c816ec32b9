// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/wait"
)

// redraw is the interval at which the table is displayed.
const redraw = 100 * time.Millisecond

// terminal displays lines and a table. On a terminal, the table is below the lines and is updated in place. On any
// other output, each change of a row is displayed as a line. A terminal is safe for concurrent use.
type terminal struct {
	out  io.Writer
	size func() (width, height int) // size of the terminal; nil if the output is not a terminal

	mu           sync.Mutex
	rows         []row
	printedLines int               // number of lines of the table on the terminal
	shown        map[string]string // phase and job in the last line about each row, if the output is not a terminal
}

func newTerminal(out io.Writer) *terminal {
	t := &terminal{out: out, shown: map[string]string{}}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.size = func() (int, int) {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil {
				return width, height
			}
			return 80, 25
		}
	}
	return t
}

// printAbove displays a line above the table.
func (t *terminal) printAbove(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearTable()
	fmt.Fprintf(t.out, format+"\n", args...)
	t.printTable()
}

// Write implements io.Writer. It displays complete lines above the table.
func (t *terminal) Write(lines []byte) (int, error) {
	t.printAbove("%s", strings.TrimSuffix(string(lines), "\n"))
	return len(lines), nil
}

// startDisplay displays a table until the function `stop` is called or ctx is done. The last state remains visible.
func (t *terminal) startDisplay(ctx context.Context, table *table) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) { t.setRows(table.listRows()) }, redraw)
	})
	return func() {
		cancel()
		running.Wait()
		t.setRows(table.listRows())
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows, t.printedLines = nil, 0
	}
}

// setRows displays the rows.
func (t *terminal) setRows(rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size != nil {
		if slices.Equal(t.rows, rows) {
			return
		}
		t.clearTable()
		t.rows = rows
		t.printTable()
		return
	}
	for _, r := range rows {
		if text := r.phase + " " + r.job; t.shown[r.name] != text {
			t.shown[r.name] = text
			fmt.Fprintln(t.out, "    "+r.format(nameWidth(rows)))
		}
	}
}

// clearTable removes the table from the terminal. The caller holds mu.
func (t *terminal) clearTable() {
	if t.printedLines > 0 {
		fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.printedLines)
		t.printedLines = 0
	}
}

// printTable draws the table on the terminal. The caller holds mu.
func (t *terminal) printTable() {
	if t.size == nil || len(t.rows) == 0 {
		return
	}
	width, height := t.size()
	names := nameWidth(t.rows)
	lines := []string{"", formatCells(names, "NAME", "PHASE", "JOB", "HOOKS", "LAST EVENT")}
	for _, r := range t.rows {
		lines = append(lines, r.format(names))
	}
	lines = lines[:min(len(lines), max(height-1, 0))] // lines that have scrolled off the screen cannot be erased
	for _, line := range lines {
		fmt.Fprintln(t.out, shorten(line, max(width-1, 20)))
	}
	t.printedLines = len(lines)
}

// format returns a row as one line of text, in which the first column is names wide.
func (r row) format(names int) string {
	hooks := ""
	if r.hooks > 0 {
		hooks = fmt.Sprint(r.hooks)
	}
	return strings.TrimRight(formatCells(names, r.name, r.phase, r.job, hooks, r.event), " ")
}

// formatCells formats the cells of a row in columns.
func formatCells(names int, name, phase, job, hooks, event string) string {
	return fmt.Sprintf("%-*s %-15s %-18s %5s  %s", names, name, phase, job, hooks, event)
}

// nameWidth returns the width of the first column.
func nameWidth(rows []row) int {
	width := 12
	for _, r := range rows {
		width = max(width, len(r.name))
	}
	return width
}

// shorten shortens a text to one line of the terminal. A longer text would need several lines, and the method
// `clearTable` would remove only some of them.
func shorten(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}
