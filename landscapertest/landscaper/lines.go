// SPDX-License-Identifier: Apache-2.0

package landscaper

import (
	"bytes"
	"io"
	"sync"
)

// lineCounter copies output to a writer and signals each line that contains a text.
type lineCounter struct {
	text []byte
	next io.Writer
	seen chan struct{} // receives one value per line, up to its capacity

	mu   sync.Mutex
	rest []byte // a line that has not ended
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
