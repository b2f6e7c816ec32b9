// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FieldError says that a place was changed that must not be: one that Diff does not write, above all in
// spec, or one that says which object it is. Find it with errors.As.
type FieldError struct {
	// Path is the JSON path of the first difference, for instance spec.config.foo.
	Path string
	// Reason says what can be changed instead. Empty: what Diff writes.
	Reason string
}

func (e *FieldError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "only labels, annotations, finalizers, ownerReferences and status can be written"
	}
	return e.Path + " was changed: " + reason
}

// SizeError says that the API server refused a write because of the size of the object. The limit is
// for the whole object, so a smaller status may help although spec is what is large.
type SizeError struct {
	Err error
}

func (e *SizeError) Error() string {
	return "the whole object (spec, status and metadata together, limit about 1.5 MiB) is too large to be stored: " + e.Err.Error()
}

// Unwrap returns the API server's error.
func (e *SizeError) Unwrap() error {
	return e.Err
}

// Permanent tells that the same write can never succeed since the object is too large. It works on the
// errors of Send and on raw API errors: 413, and the two 500s that etcd's limits end in. nil is false.
func Permanent(err error) bool {
	if sized := (*SizeError)(nil); errors.As(err, &sized) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	answer := status.Status()
	if answer.Code == http.StatusRequestEntityTooLarge || apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	text := answer.Message
	return answer.Code == http.StatusInternalServerError && (strings.Contains(text, "request is too large") ||
		strings.Contains(text, "ResourceExhausted") && strings.Contains(text, "larger than max"))
}

// explain gives errors about the size a text that says what is wrong.
func explain(err error) error {
	if Permanent(err) {
		return &SizeError{Err: err}
	}
	return err
}
