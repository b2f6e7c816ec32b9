// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// redraw is the minimum interval between redraws of the table.
const redraw = 100 * time.Millisecond

// terminal displays lines and rows. If the output is a terminal, the rows form a table below the lines. The table is
// updated in place. Otherwise, each change of a row is displayed as a line. A terminal is safe for concurrent use.
type terminal struct {
	out  io.Writer
	size func() (width, height int) // returns the size of the terminal; nil if the output is not a terminal

	mu    sync.Mutex
	table []row
	drawn int               // number of lines of the table that are on the terminal
	known map[string]string // the last displayed text of each row, if the output is not a terminal
}

func newTerminal(out io.Writer) *terminal {
	s := &terminal{out: out, known: map[string]string{}}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.size = func() (int, int) {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil {
				return width, height
			}
			return 80, 25
		}
	}
	return s
}

// printf displays a line above the table.
func (s *terminal) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.draw()
}

// Write implements io.Writer. It displays complete lines above the table.
func (s *terminal) Write(lines []byte) (int, error) {
	s.printf("%s", strings.TrimSuffix(string(lines), "\n"))
	return len(lines), nil
}

// follow displays changes of the state until the function `stop` is called. The last table remains visible.
func (s *terminal) follow(b *state) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(redraw)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				s.show(b.snapshot())
				s.leave()
				return
			case <-ticker.C:
			}
			select {
			case <-b.changed:
				s.show(b.snapshot())
			default:
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// show displays the rows.
func (s *terminal) show(rows []row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != nil {
		s.erase()
		s.table = rows
		s.draw()
		return
	}
	for _, r := range rows {
		if text := r.phase + " " + r.job; s.known[r.name] != text {
			s.known[r.name] = text
			fmt.Fprintln(s.out, "    "+r.line(nameWidth(rows)))
		}
	}
}

// leave makes the current table a permanent part of the output.
func (s *terminal) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.drawn = nil, 0
}

// erase removes the table from the terminal. The caller holds mu.
func (s *terminal) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw draws the table on the terminal. The caller holds mu.
func (s *terminal) draw() {
	if s.size == nil || len(s.table) == 0 {
		return
	}
	wide := nameWidth(s.table)
	lines := []string{"", rowLine(wide, "NAME", "PHASE", "JOB", "HOOKS", "LAST EVENT")}
	for _, r := range s.table {
		lines = append(lines, r.line(wide))
	}
	width, height := s.size()
	lines = lines[:min(len(lines), max(height-1, 0))] // lines that have scrolled off the screen cannot be erased
	for _, line := range lines {
		fmt.Fprintln(s.out, cut(line, max(width-1, 20)))
	}
	s.drawn = len(lines)
}

// line returns a row as one line of text.
func (r row) line(wide int) string {
	hooks := ""
	if r.hooks != noHooks {
		hooks = fmt.Sprint(r.hooks)
	}
	return strings.TrimRight(rowLine(wide, r.name, r.phase, r.job, hooks, r.event), " ")
}

// rowLine formats the cells of a row in columns. The parameter `wide` is the width of the first column.
func rowLine(wide int, name, phase, job, hooks, event string) string {
	return fmt.Sprintf("%-*s %-15s %-18s %5s  %s", wide, name, phase, job, hooks, event)
}

// nameWidth returns the width of the first column.
func nameWidth(rows []row) int {
	wide := 12
	for _, r := range rows {
		wide = max(wide, len(r.name))
	}
	return wide
}

// cut shortens a text to one line of the terminal. A longer text would need several lines, and the method `erase` would
// remove only some of them.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}
