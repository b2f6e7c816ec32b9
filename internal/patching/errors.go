// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FieldError reports a field that cannot be changed as requested. Use errors.As to find it.
type FieldError struct {
	// Path is the JSON path of the field, for example spec.config.foo.
	Path string
	// Reason describes the problem. It never contains the value.
	Reason string
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Reason }

// SizeError reports that the API server refused a write because of the size of the object. The limit applies to the
// whole object, so a smaller status may help even if the spec is large.
type SizeError struct {
	// Err is the error of the API server.
	Err error
}

func (e *SizeError) Error() string {
	return "the whole object (spec, status and metadata together, limit about 1.5 MiB) is too large to be stored: " + e.Err.Error()
}

// Unwrap returns the error of the API server.
func (e *SizeError) Unwrap() error { return e.Err }

// RightsError reports that an object can neither be patched nor updated because both rights are missing.
type RightsError struct {
	// Resource is the kind of the object, with its subresource if there is one, for example DeployItem/status.
	Resource string
	// Err is the error of the API server for the patch.
	Err error
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("neither patch nor update of %s is allowed: %v", e.Resource, e.Err)
}

// Unwrap returns the error of the API server.
func (e *RightsError) Unwrap() error { return e.Err }

// Permanent reports whether the same write can never succeed because the object is too large. It works on errors of
// this package and on raw API errors: 413, and the two kinds of 500 that result from the limits of etcd. It returns
// false for nil.
func Permanent(err error) bool {
	if _, sized := errors.AsType[*SizeError](err); sized {
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

// explain wraps errors about the size of the object in a SizeError.
func explain(err error) error {
	if Permanent(err) {
		return &SizeError{Err: err}
	}
	return err
}
