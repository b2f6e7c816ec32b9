// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// statusInterval is how often the state of a long step is shown if the output is not a terminal.
const statusInterval = 5 * time.Second

// Reporter shows the progress of a long step to a user. It is safe for concurrent use.
type Reporter struct {
	name     string // prefix of every line
	w        io.Writer
	terminal bool // the output is a terminal, where a status line can be overwritten

	mu     sync.Mutex
	seen   map[string]bool
	status bool      // the cursor is after a status line
	last   time.Time // time of the last status line, if the output is not a terminal
}

// NewReporter returns a Reporter that writes to w, or to os.Stderr if w is nil. Each line begins with name. If w has a
// method Unwrap, the writer that Unwrap returns determines whether the output is a terminal.
func NewReporter(name string, w io.Writer) *Reporter {
	if w == nil {
		w = os.Stderr
	}
	out := w
	if wrapper, ok := w.(interface{ Unwrap() io.Writer }); ok {
		out = wrapper.Unwrap()
	}
	f, ok := out.(*os.File)
	return &Reporter{name: name, w: w, terminal: ok && term.IsTerminal(int(f.Fd())), seen: map[string]bool{}}
}

// Printf writes one line.
func (r *Reporter) Printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.printLine(fmt.Sprintf(format, args...))
}

// printOnce writes a line unless it was written before.
func (r *Reporter) printOnce(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if !r.seen[text] {
		r.seen[text] = true
		r.printLine(text)
	}
}

// startStatus shows the state of a long step until the function `end` is called. The function `end` returns how long
// the step took.
func (r *Reporter) startStatus(text func(elapsed time.Duration) string) (end func() time.Duration) {
	start, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				r.printStatus(now, text(now.Sub(start)))
			}
		}
	}()
	return func() time.Duration {
		close(done)
		<-ended
		return time.Since(start)
	}
}

// printStatus shows the state of a long step. On a terminal, it overwrites the previous state. Otherwise, it writes at
// most one line per statusInterval.
func (r *Reporter) printStatus(now time.Time, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.terminal:
		fmt.Fprintf(r.w, "\r\x1b[K%s: %s", r.name, text)
		r.status = true
	case r.last.IsZero():
		r.last = now // the start of the step has just been shown
	case now.Sub(r.last) >= statusInterval:
		r.last = now
		r.printLine(text)
	}
}

// printLine writes a complete line. The caller holds mu.
func (r *Reporter) printLine(text string) {
	if r.status {
		fmt.Fprint(r.w, "\r\x1b[K")
		r.status = false
	}
	fmt.Fprintln(r.w, r.name+": "+text)
}
