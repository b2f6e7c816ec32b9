// SPDX-License-Identifier: Apache-2.0

// Package heartbeat shows that a command which prints nothing for a while is still running.
package heartbeat

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Interval is how long a command may be silent.
const Interval = 5 * time.Second

// Writer copies its input, and writes a line after each Interval without output. It is safe for concurrent use.
type Writer struct {
	out   io.Writer
	lines io.Writer
	text  func(elapsed time.Duration) string

	mu    sync.Mutex
	quiet *time.Timer
	ended bool
	begin time.Time
}

// Start returns a Writer that copies to out, and writes the lines to lines until Stop is called. Both may be the same.
// text returns the line without a line break; it must not write to the Writer.
func Start(out, lines io.Writer, text func(elapsed time.Duration) string) *Writer {
	h := &Writer{out: out, lines: lines, text: text, begin: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiet = time.AfterFunc(Interval, h.beat)
	return h
}

// Write implements io.Writer.
func (h *Writer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.quiet.Reset(Interval)
	}
	return h.out.Write(p)
}

// Stop stops the lines. Write can still be called.
func (h *Writer) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.quiet.Stop()
}

// beat writes a line.
func (h *Writer) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	fmt.Fprintln(h.lines, h.text(time.Since(h.begin).Round(time.Second)))
	h.quiet.Reset(Interval)
}
