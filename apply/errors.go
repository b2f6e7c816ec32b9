// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// Class classifies an error by the action that can resolve it: repeating the call, waiting, or changing the
// configuration.
type Class string

const (
	// Retry means that the same call may succeed later. Examples are conflicts, missing permissions and an unreachable
	// API server.
	Retry Class = "retry"
	// Wait means that the object is unfinished and needs nothing but time. An error of this class is never returned,
	// but listed in Report.Waiting.
	Wait Class = "wait"
	// Permanent means that the configuration must change.
	Permanent Class = "permanent"
)

// Error explains why one object could not be written to the cluster, in one line without secret values. Use errors.As
// to find it.
type Error struct {
	// Ref names the object. It is the zero value if the error concerns all objects.
	Ref Ref
	// Path is the path of the field, such as ".spec.replicas". It is empty if the field is not known.
	Path string
	// Reason is an explanation for users.
	Reason string
	// Class describes which action can resolve the error.
	Class Class
	// Immutable means that the manifest changes an immutable field. With the strategy Recreate, the object is deleted
	// and created again in this case.
	Immutable bool
	// Status is the reason in the API server's answer, such as metav1.StatusReasonUnauthorized. It is empty if the
	// answer contains no reason.
	Status metav1.StatusReason

	unserved bool   // the cluster does not serve the object at the moment
	webhook  string // the admission webhook that denied the request, or that the API server could not call

	told  bool  // the reason comes from the API server
	cause error // the cause; nil for an answer of the API server, because it may quote values of the object
}

func (e *Error) Error() string {
	parts := []string{}
	if e.Ref != (Ref{}) {
		parts = append(parts, e.Ref.String())
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return toOneLine(strings.Join(append(parts, e.Reason), ": ")) // names in a manifest may contain any characters
}

// Unwrap returns the cause of an error that does not come from the API server, such as the error of an ended context.
func (e *Error) Unwrap() error { return e.cause }

// Errors is a list of the errors of several objects, in a fixed order.
type Errors []*Error

// shownErrors is the number of errors that the text of Errors contains.
const shownErrors = 5

func (e Errors) Error() string {
	texts := []string{}
	for _, one := range e[:min(len(e), shownErrors)] {
		texts = append(texts, one.Error())
	}
	if more := len(e) - shownErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return toOneLine(strings.Join(texts, "; "))
}

// Unwrap returns the errors of the list, so that errors.As and errors.Is find them.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// err returns the list as an error. It returns a nil error for an empty list, because an error interface that contains
// a nil Errors is not nil.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// ClassOf returns the class of an error that this package returned. It is Permanent if the error of any object is
// Permanent, and Retry otherwise. The class of errors from other packages is Retry.
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

// newInvalidError returns a Permanent error that was found without a request to the API server.
func newInvalidError(ref Ref, path, format string, args ...any) *Error {
	return &Error{Ref: ref, Path: path, Reason: fmt.Sprintf(format, args...), Class: Permanent}
}

// newWaitingError returns an error of class Wait for an unfinished object.
func newWaitingError(ref Ref, format string, args ...any) *Error {
	return &Error{Ref: ref, Reason: fmt.Sprintf(format, args...), Class: Wait}
}

const (
	// longestText limits the length of one error text.
	longestText = 1024
	// shortestSecret is the length in bytes of the shortest value that is hidden. Hiding shorter values would remove
	// ordinary words. Short values in errors about Secrets are safe, because such errors contain no values at all.
	shortestSecret = 4
)

// hideSecret hides all strings in the data of a Secret. If a string is valid base64, hideSecret hides the decoded text.
// The redactor also finds the encoded form of that text.
func hideSecret(hide *redact.Redactor, data any) {
	switch v := data.(type) {
	case string:
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			v = string(plain)
		}
		hide.Hide(v)
	case []any:
		for _, one := range v {
			hideSecret(hide, one)
		}
	case map[string]any:
		for _, one := range v {
			hideSecret(hide, one)
		}
	}
}

// cleanText returns the text as one line of limited length. The values that the redactor hides are replaced.
func cleanText(hide *redact.Redactor, text string) string { return toOneLine(hide.Redact(text)) }

// toOneLine returns the text as one line of limited length.
func toOneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longestText {
		return text
	}
	end := longestText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
