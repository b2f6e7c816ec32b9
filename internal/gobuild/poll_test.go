// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"testing"
	"time"
)

// poll waits until the condition is true, but at most half a minute.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited 30 s for: %s", what)
		case <-tick.C:
		}
	}
}
