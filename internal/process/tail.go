// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"strings"
	"sync"
)

// Tail is a writer that keeps the last bytes of its input. It is safe for concurrent use.
type Tail struct {
	keep int
	next io.Writer

	mu  sync.Mutex
	end []byte
}

// NewTail returns a Tail that keeps the last `keep` bytes. The Tail also copies its whole input to `next`, unless
// `next` is nil.
func NewTail(keep int, next io.Writer) *Tail { return &Tail{keep: keep, next: next} }

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if n := len(t.end) - t.keep; n > 0 {
		t.end = append([]byte(nil), t.end[n:]...)
	}
	if t.next == nil {
		return len(p), nil
	}
	return t.next.Write(p)
}

// String returns the kept bytes without surrounding white space.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.end))
}
