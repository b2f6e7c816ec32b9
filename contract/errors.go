// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// CodedError is an error with an operation, a reason and codes, like Landscaper's own errors. Unlike Landscaper's
// errors, a CodedError has no timestamps, so no clock is needed to create it.
type CodedError struct {
	Operation, Reason, Message string
	Codes                      []lsv1alpha1.ErrorCode
	// Err is the cause, or nil if there is none. Its text follows the message.
	Err error
}

// Error returns the message followed by the text of the cause.
func (f *CodedError) Error() string {
	switch {
	case f.Err == nil:
		return f.Message
	case f.Message == "":
		return fmt.Sprint(f.Err)
	default:
		return fmt.Sprintf("%s: %v", f.Message, f.Err)
	}
}

// Unwrap returns the cause.
func (f *CodedError) Unwrap() error { return f.Err }

// LandscaperError returns the fault as the API type, without times and without the cause.
func (f *CodedError) LandscaperError() *lsv1alpha1.Error {
	return &lsv1alpha1.Error{Operation: f.Operation, Reason: f.Reason, Message: f.Message, Codes: slices.Clone(f.Codes)}
}

// landscaperError is the part of Landscaper's error interface that this package needs.
type landscaperError interface{ LandscaperError() *lsv1alpha1.Error }

// NewError converts err to an error for the status. The message is one line of valid UTF-8 with at most 1 KiB. The
// codes are the codes of the whole error tree. The operation and the reason come from the outermost Landscaper error in
// the tree. If there is no such error, the arguments operation and reason are used. If the operation or the reason of
// the Landscaper error is empty, the argument of the same name is used instead. The message also contains the text of
// the errors that wrap the Landscaper error. NewError returns nil if err is nil.
func NewError(err error, operation, reason string, now time.Time) *lsv1alpha1.Error {
	if err == nil {
		return nil
	}
	text := fmt.Sprint(err)
	found := false
	var codes []lsv1alpha1.ErrorCode
	visit(err, func(e *lsv1alpha1.Error) {
		text = strings.ReplaceAll(text, fmt.Sprintf("Op: %s - Reason: %s - Message: ", e.Operation, e.Reason), "")
		codes = appendMissing(codes, e.Codes)
		if found {
			return
		}
		found = true
		operation, reason = cmp.Or(e.Operation, operation), cmp.Or(e.Reason, reason)
	})
	if isNil(err) {
		text = fmt.Sprintf("nil %T returned as an error", err)
	}
	return newError(operation, reason, text, now, codes...)
}

func newError(operation, reason, message string, now time.Time, codes ...lsv1alpha1.ErrorCode) *lsv1alpha1.Error {
	return &lsv1alpha1.Error{
		Operation: OneLine(operation, MaxReason), Reason: OneLine(reason, MaxReason), Message: OneLine(message, MaxMessage),
		Codes: codes, LastTransitionTime: toStoredTime(now), LastUpdateTime: toStoredTime(now),
	}
}

// ErrorCodes returns the error codes of the whole error tree, outermost first and without duplicates. It follows both
// forms of the method Unwrap. It also follows the method Errors, which Kubernetes aggregates implement.
func ErrorCodes(err error) []lsv1alpha1.ErrorCode {
	var codes []lsv1alpha1.ErrorCode
	visit(err, func(e *lsv1alpha1.Error) { codes = appendMissing(codes, e.Codes) })
	return codes
}

// HasUnrecoverableCode reports whether one of the codes makes a retry pointless, according to the list of the API
// module.
func HasUnrecoverableCode(codes []lsv1alpha1.ErrorCode) bool {
	return slices.ContainsFunc(codes, func(c lsv1alpha1.ErrorCode) bool {
		return slices.Contains(lsv1alpha1.UnrecoverableErrorCodes, c)
	})
}

// maxVisitedErrors is the maximum number of errors that the function `visit` examines. The limit prevents a cyclic
// error tree from blocking a worker.
const maxVisitedErrors = 1000

// visit calls the given function for each Landscaper error in the tree, depth first, outermost first.
func visit(err error, do func(*lsv1alpha1.Error)) {
	todo := []error{err}
	for n := 0; len(todo) > 0 && n < maxVisitedErrors; n++ {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if isNil(e) {
			continue
		}
		if ls, ok := e.(landscaperError); ok {
			if le := ls.LandscaperError(); le != nil {
				do(le)
			}
		}
		inner := unwrapAll(e)
		slices.Reverse(inner)
		todo = append(todo, inner...)
	}
}

// unwrapAll returns the errors that e wraps, as a new slice.
func unwrapAll(e error) []error {
	switch w := e.(type) { //nolint:errorlint // the walk itself unwraps
	case interface{ Unwrap() error }:
		return []error{w.Unwrap()}
	case interface{ Unwrap() []error }:
		return slices.Clone(w.Unwrap())
	case interface{ Errors() []error }:
		return slices.Clone(w.Errors())
	default:
		return nil
	}
}

// isNil reports whether err is nil or an interface value that contains a nil pointer. The methods of such an error may
// panic.
func isNil(err error) bool {
	if err == nil {
		return true
	}
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func appendMissing(codes, more []lsv1alpha1.ErrorCode) []lsv1alpha1.ErrorCode {
	for _, c := range more {
		if !slices.Contains(codes, c) {
			codes = append(codes, c)
		}
	}
	return codes
}
