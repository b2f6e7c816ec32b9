// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"io"
	"strings"
	"sync"
)

// kept is how much of the deployer's output is kept to explain why it cannot be checked. Bytes.
const kept = 4 << 10

// tail keeps the end of what is written to it and hands everything on.
type tail struct {
	next io.Writer // nil: nobody

	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if n := len(t.end) - kept; n > 0 {
		t.end = append([]byte(nil), t.end[n:]...)
	}
	if t.next == nil {
		return len(p), nil
	}
	return t.next.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.end))
}
