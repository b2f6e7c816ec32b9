// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class says what helps against an error.
type Class string

const (
	// Retry means that the same call may succeed later. Conflicts, missing rights, an unreachable API server.
	Retry Class = "retry"
	// Wait means that something unfinished is in the way and gets done without us. It becomes Report.Waiting, never an error.
	Wait Class = "wait"
	// Permanent means that the configuration must change.
	Permanent Class = "permanent"
)

// Error is why one object could not be brought to the cluster, in one line without secret values. Find it with
// errors.As.
type Error struct {
	// Ref is the object. Its zero value: the error is about all of them.
	Ref Ref
	// Path is the field, as in ".spec.replicas"; empty when it is not known.
	Path string
	// Reason is for people.
	Reason string
	// Class says what helps.
	Class Class
	// Immutable reports that a field was changed that cannot be: the strategy Recreate makes the object anew.
	Immutable bool
	// Status is the API server's reason, for instance metav1.StatusReasonUnauthorized; empty when it gave none.
	Status metav1.StatusReason

	told  bool  // the reason is the API server's
	cause error // never the API server's answer: that may contain content of the object
}

func (e *Error) Error() string {
	parts := []string{}
	if e.Ref != (Ref{}) {
		parts = append(parts, e.Ref.String())
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return oneLine(strings.Join(append(parts, e.Reason), ": ")) // names in a manifest may be anything
}

// Unwrap returns what is below an error that does not come from the API server, above all an ended context.
func (e *Error) Unwrap() error { return e.cause }

// Errors are the errors of several objects, in a fixed order.
type Errors []*Error

// shownErrors is how many errors a text names.
const shownErrors = 5

func (e Errors) Error() string {
	texts := []string{}
	for _, one := range e[:min(len(e), shownErrors)] {
		texts = append(texts, one.Error())
	}
	if more := len(e) - shownErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return oneLine(strings.Join(texts, "; "))
}

// Unwrap makes errors.As and errors.Is find each of them.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// err is nil when there are none: a nil Errors in an error would not be.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// ClassOf tells what helps against an error of this package: Permanent if that is true of one object, else
// Retry. Errors of others are Retry.
func ClassOf(err error) Class {
	all, _ := errors.AsType[Errors](err)
	if one, ok := errors.AsType[*Error](err); ok {
		all = append(all, one)
	}
	for _, one := range all {
		if one.Class == Permanent {
			return Permanent
		}
	}
	return Retry
}

// invalid is a Permanent error that was found without asking the API server.
func invalid(ref Ref, path, format string, args ...any) *Error {
	return &Error{Ref: ref, Path: path, Reason: fmt.Sprintf(format, args...), Class: Permanent}
}

// waiting is what stops an object until something else is done. after: when to look again.
func waiting(ref Ref, format string, args ...any) *Error {
	return &Error{Ref: ref, Reason: fmt.Sprintf(format, args...), Class: Wait}
}
