// SPDX-License-Identifier: Apache-2.0

// Package heartbeat writes a line from time to time while a command writes no output, to show that the command is still
// running.
package heartbeat

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Interval is the time without input after which a Writer writes a line.
const Interval = 5 * time.Second

// Writer copies its input to another writer, and writes a line after each Interval without input. It is safe for
// concurrent use.
type Writer struct {
	out   io.Writer
	lines io.Writer
	text  func(elapsed time.Duration) string

	mu    sync.Mutex
	quiet *time.Timer
	ended bool
	begin time.Time
}

// Start returns a Writer that copies its input to out. Until Stop is called, the Writer also writes a line to `lines`
// after each Interval without input. The arguments `out` and `lines` may be the same writer. The function `text`
// returns such a line without a line break. It must not write to the Writer.
func Start(out, lines io.Writer, text func(elapsed time.Duration) string) *Writer {
	h := &Writer{out: out, lines: lines, text: text, begin: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiet = time.AfterFunc(Interval, h.writeAfterInterval)
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

// Unwrap returns the writer to which h copies its input.
func (h *Writer) Unwrap() io.Writer { return h.out }

// Stop ends the additional lines. After that, the Writer only copies its input.
func (h *Writer) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.quiet.Stop()
}

// writeAfterInterval writes a line after an Interval without input.
func (h *Writer) writeAfterInterval() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	fmt.Fprintln(h.lines, h.text(time.Since(h.begin).Round(time.Second)))
	h.quiet.Reset(Interval)
}
