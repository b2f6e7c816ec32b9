// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fakeT is a testing.TB that records the message of Fatalf.
type fakeT struct {
	testing.TB

	reason string
}

func (e *fakeT) Helper() {}

// Fatalf ends the goroutine, as the method of a real test does.
func (e *fakeT) Fatalf(format string, args ...any) {
	e.reason = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFatalErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(testing.TB)
		want string
	}{
		"an item without a configuration [F31]":         {func(t testing.TB) { NewItem(t, "shop", "web", nil) }, "the configuration is null, but an API server accepts only an object"},
		"an item whose configuration is a list [F31]":   {func(t testing.TB) { NewItem(t, "shop", "web", []int{1}) }, "the configuration is [1], but an API server accepts only an object"},
		"a configuration that cannot be encoded [F31]":  {func(t testing.TB) { NewItem(t, "shop", "web", func() {}) }, "encode the configuration"},
		"a status that is not an object [F31]":          {func(t testing.TB) { WithStatus(t, newService("a", "ClusterIP"), 7) }, "is not an object"},
		"a child that cannot be read [F31]":             {func(t testing.TB) { WithReadyStatus(t, "a: b: c") }, "the child"},
		"a status for two children [F31]":               {func(t testing.TB) { WithStatus(t, []any{full, less}, nil) }, "want one child, got 2"},
		"a status that cannot be encoded as JSON [F31]": {func(t testing.TB) { WithStatus(t, full, func() {}) }, "encode the status"},
	} {
		t.Run(name, func(t *testing.T) {
			e, done := &fakeT{TB: t}, make(chan struct{})
			go func() {
				defer close(done)
				tc.call(e)
			}()
			<-done
			if !strings.Contains(e.reason, tc.want) {
				t.Errorf("got %q, want %q", e.reason, tc.want)
			}
		})
	}
}
