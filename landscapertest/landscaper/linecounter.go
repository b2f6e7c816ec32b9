// SPDX-License-Identifier: Apache-2.0

package landscaper

import (
	"bytes"
	"io"
	"sync"
)

// lineCounter copies output to a writer. It sends a signal for each line that contains a given text.
type lineCounter struct {
	text []byte
	next io.Writer
	seen chan struct{} // receives a value for each line that contains the text, until the channel is full

	mu   sync.Mutex
	rest []byte // the last line, if its end has not been written yet
}

func newLineCounter(text string, next io.Writer) *lineCounter {
	return &lineCounter{text: []byte(text), next: next, seen: make(chan struct{}, 16)}
}

// Write implements io.Writer.
func (c *lineCounter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		line, rest, ok := bytes.Cut(c.rest, []byte("\n"))
		if !ok {
			break
		}
		if bytes.Contains(line, c.text) {
			select {
			case c.seen <- struct{}{}:
			default:
			}
		}
		c.rest = rest
	}
	if c.next == nil {
		return len(p), nil
	}
	return c.next.Write(p)
}
