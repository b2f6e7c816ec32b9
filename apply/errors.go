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
	// ClassRetry means that the same call may succeed later. Examples are conflicts, missing permissions and an
	// unreachable API server.
	ClassRetry Class = "retry"
	// ClassWait means that the object is unfinished and needs nothing but time. An error of this class is never returned,
	// but listed in Report.Waiting.
	ClassWait Class = "wait"
	// ClassPermanent means that the configuration must change.
	ClassPermanent Class = "permanent"
)

// Error explains why one object could not be written to the cluster, in one line without secret values. Use errors.As
// to find it.
type Error struct {
	// Ref names the object. It is the zero value if the error concerns all objects.
	Ref Ref
	// Path is the path of the field, such as ".spec.replicas". It is empty if the field is not known.
	Path string
	// Message is an explanation for users.
	Message string
	// Class describes which action can resolve the error.
	Class Class
	// Immutable means that the manifest changes an immutable field. With StrategyRecreate, the object is deleted
	// and created again in this case.
	Immutable bool
	// StatusReason is the reason in the API server's answer, such as metav1.StatusReasonUnauthorized. It is empty if the
	// answer contains no reason.
	StatusReason metav1.StatusReason

	unserved bool   // the cluster does not serve the object at the moment
	webhook  string // the admission webhook that denied the request, or that the API server could not call

	isFromServer bool  // the reason comes from the API server
	cause        error // the cause; nil for an answer of the API server, because it may quote values of the object
}

func (e *Error) Error() string {
	parts := []string{}
	if e.Ref != (Ref{}) {
		parts = append(parts, e.Ref.String())
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return toOneLine(strings.Join(append(parts, e.Message), ": ")) // names in a manifest may contain any characters
}

// Unwrap returns the cause of an error that does not come from the API server, such as the error of an ended context.
func (e *Error) Unwrap() error { return e.cause }

// Errors is a list of the errors of several objects, in a fixed order.
type Errors []*Error

// maxShownErrors is the number of errors that the text of Errors contains.
const maxShownErrors = 5

func (e Errors) Error() string {
	texts := []string{}
	for _, one := range e[:min(len(e), maxShownErrors)] {
		texts = append(texts, one.Error())
	}
	if more := len(e) - maxShownErrors; more > 0 {
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

// GetClass returns the class of an error that this package returned. It is ClassPermanent if the error of any object
// has this class, and otherwise ClassRetry. The class of errors from other packages is ClassRetry.
func GetClass(err error) Class {
	all, _ := errors.AsType[Errors](err)
	if one, ok := errors.AsType[*Error](err); ok {
		all = append(all, one)
	}
	for _, one := range all {
		if one.Class == ClassPermanent {
			return ClassPermanent
		}
	}
	return ClassRetry
}

// newInvalidError returns an error of ClassPermanent that was found without a request to the API server.
func newInvalidError(ref Ref, path, format string, args ...any) *Error {
	return &Error{Ref: ref, Path: path, Message: fmt.Sprintf(format, args...), Class: ClassPermanent}
}

// newWaitingError returns an error of class Wait for an unfinished object.
func newWaitingError(ref Ref, format string, args ...any) *Error {
	return &Error{Ref: ref, Message: fmt.Sprintf(format, args...), Class: ClassWait}
}

const (
	// maxTextLength limits the length of one error text.
	maxTextLength = 1024
	// minSecretLength is the length in bytes of the shortest value that is hidden. Hiding shorter values would remove
	// ordinary words. Short values in errors about Secrets are safe, because such errors contain no values at all.
	minSecretLength = 4
)

// maskSecret hides all strings in the data of a Secret. If a string is valid base64, maskSecret hides the decoded text.
// The redactor also finds the encoded form of that text.
func maskSecret(hide *redact.Redactor, data any) {
	switch v := data.(type) {
	case string:
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			v = string(plain)
		}
		hide.AddValues(v)
	case []any:
		for _, one := range v {
			maskSecret(hide, one)
		}
	case map[string]any:
		for _, one := range v {
			maskSecret(hide, one)
		}
	}
}

// cleanText returns the text as one line of limited length. The values that the redactor hides are replaced.
func cleanText(hide *redact.Redactor, text string) string { return toOneLine(hide.Redact(text)) }

// toOneLine returns the text as one line of limited length.
func toOneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxTextLength {
		return text
	}
	end := maxTextLength - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
