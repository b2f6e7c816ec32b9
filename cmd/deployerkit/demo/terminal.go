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

// redraw is the shortest time between two drawings of the table.
const redraw = 100 * time.Millisecond

// terminal shows lines and, on a terminal, a table below them that is redrawn in
// place. Elsewhere each change of a row is a line. It is safe for concurrent use.
type terminal struct {
	out  io.Writer
	size func() (width, height int) // of the terminal; nil if out is not a terminal

	mu    sync.Mutex
	table []row
	drawn int               // lines of the table that stand on the terminal
	known map[string]string // without a terminal: what was last said about an item
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

// printf shows a line above the table.
func (s *terminal) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.draw()
}

// Write implements io.Writer: it shows whole lines above the table.
func (s *terminal) Write(lines []byte) (int, error) {
	s.printf("%s", strings.TrimSuffix(string(lines), "\n"))
	return len(lines), nil
}

// follow shows the state until the returned func is called. The table stays
// where it stands then.
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

// show brings the rows to the terminal.
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

// leave makes the table part of what was said.
func (s *terminal) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.drawn = nil, 0
}

// erase takes the table off the terminal; the caller holds mu.
func (s *terminal) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw puts the table on the terminal; the caller holds mu.
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
	lines = lines[:min(len(lines), max(height-1, 0))] // what has scrolled away cannot be erased
	for _, line := range lines {
		fmt.Fprintln(s.out, cut(line, max(width-1, 20)))
	}
	s.drawn = len(lines)
}

// line is a row as text.
func (r row) line(wide int) string {
	hooks := ""
	if r.hooks != noHooks {
		hooks = fmt.Sprint(r.hooks)
	}
	return strings.TrimRight(rowLine(wide, r.name, r.phase, r.job, hooks, r.event), " ")
}

// rowLine puts cells into columns, the first of which has the given width.
func rowLine(wide int, name, phase, job, hooks, event string) string {
	return fmt.Sprintf("%-*s %-15s %-18s %5s  %s", wide, name, phase, job, hooks, event)
}

// nameWidth is the width of the column of names.
func nameWidth(rows []row) int {
	wide := 12
	for _, r := range rows {
		wide = max(wide, len(r.name))
	}
	return wide
}

// cut keeps a line from wrapping: the table would be taller than it seems.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}
