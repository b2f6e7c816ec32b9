// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"runtime/debug"
	"strings"
)

const maxPanicText = 1024

// PanicError is the error that results from a panic in a hook. Panics in goroutines that a hook starts itself are not
// recovered.
type PanicError struct {
	// Value is the value that the hook panicked with.
	Value any
	// Stack is the stack of the goroutine that panicked. It is for the log and not part of the error text.
	Stack []byte
}

// Error returns one line of at most about 1 KiB.
func (e *PanicError) Error() string {
	text := strings.Join(strings.Fields(fmt.Sprint(e.Value)), " ")
	if len(text) > maxPanicText {
		text = strings.ToValidUTF8(text[:maxPanicText], "") + "…"
	}
	return "panic: " + text
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// recoverPanic calls f and turns a panic into an error.
func recoverPanic(f func() (*HookResult, error)) (result *HookResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
