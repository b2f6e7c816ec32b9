// SPDX-License-Identifier: Apache-2.0

// Package waiting defines the error of an action or a hook that has to wait. Such an error is not a failure.
package waiting

import (
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// defaultDelay is the delay before the next call if an Error has no delay.
const defaultDelay = time.Minute

// Error is returned by an action or a hook that is not done yet, but has not failed.
type Error struct {
	// Reason is what the action or the hook waits for.
	Reason string
	// After is the delay before the next call. If it is zero or negative, the delay is one minute.
	After time.Duration
}

// Error returns a text that names what the action or the hook waits for.
func (e *Error) Error() string { return "waiting for " + e.Reason }

// Delay returns the delay before the next call.
func (e *Error) Delay() time.Duration {
	if e.After <= 0 {
		return defaultDelay
	}
	return e.After
}

// AsError returns the error with the shortest delay if err consists only of errors of the type Error. Otherwise the
// second result is false.
func AsError(err error) (*Error, bool) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand: every leaf must be an Error
	case nil:
		return nil, false
	case *Error:
		return e, true
	case interface{ Unwrap() []error }:
		return allAsError(e.Unwrap())
	case utilerrors.Aggregate: // this interface has no Unwrap method
		return allAsError(e.Errors())
	case interface{ Unwrap() error }:
		return AsError(e.Unwrap())
	}
	return nil, false
}

// allAsError reports whether all errors consist only of errors of the type Error, and returns the error with the
// shortest delay.
func allAsError(errs []error) (*Error, bool) {
	var shortest *Error
	for _, err := range errs {
		e, ok := AsError(err)
		if !ok {
			return nil, false
		}
		if shortest == nil || e.Delay() < shortest.Delay() {
			shortest = e
		}
	}
	return shortest, shortest != nil
}
