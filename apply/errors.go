// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class classifies an error by what resolves it.
type Class string

const (
	// Retry means that the same call may succeed later. Examples are conflicts, missing rights and an unreachable API
	// server.
	Retry Class = "retry"
	// Wait means that something unfinished is in the way and finishes by itself. It becomes Report.Waiting, never an
	// error.
	Wait Class = "wait"
	// Permanent means that the configuration must change.
	Permanent Class = "permanent"
)

// Error is the reason why one object could not be written to the cluster, in one line without secret values. Use
// errors.As to find it.
type Error struct {
	// Ref names the object. It is the zero value if the error concerns all objects.
	Ref Ref
	// Path is the field, as in ".spec.replicas". It is empty if the field is not known.
	Path string
	// Reason explains the error to people.
	Reason string
	// Class says what resolves the error.
	Class Class
	// Immutable reports that an immutable field was changed. The strategy Recreate replaces the object.
	Immutable bool
	// Status is the API server's reason, for instance metav1.StatusReasonUnauthorized. It is empty if there is none.
	Status metav1.StatusReason

	told  bool  // whether the reason comes from the API server
	cause error // never the API server's answer, which may contain content of the object
}

func (e *Error) Error() string {
	parts := []string{}
	if e.Ref != (Ref{}) {
		parts = append(parts, e.Ref.String())
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return oneLine(strings.Join(append(parts, e.Reason), ": ")) // names in a manifest may contain anything
}

// Unwrap returns the cause of an error that does not come from the API server, above all that of an ended context.
func (e *Error) Unwrap() error { return e.cause }

// Errors is a list of errors of several objects, in a fixed order.
type Errors []*Error

// shownErrors is the number of errors that a text names.
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

// Unwrap lets errors.As and errors.Is find each error of the list.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// err returns nil if there are no errors, because a nil Errors in an error interface is not nil.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// ClassOf returns the class of an error of this package. It is Permanent if one of the objects' errors is Permanent,
// and Retry otherwise. Errors of other packages are Retry.
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

// invalid returns a Permanent error that was found without a call of the API server.
func invalid(ref Ref, path, format string, args ...any) *Error {
	return &Error{Ref: ref, Path: path, Reason: fmt.Sprintf(format, args...), Class: Permanent}
}

// waiting returns an error of class Wait for an object that needs something else to be finished first.
func waiting(ref Ref, format string, args ...any) *Error {
	return &Error{Ref: ref, Reason: fmt.Sprintf(format, args...), Class: Wait}
}
