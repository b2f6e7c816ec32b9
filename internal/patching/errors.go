// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SizeError reports that the API server refused a write because the object would be too large. The limit applies to the
// whole object. Therefore a smaller status may help even if it is the spec that is large.
type SizeError struct {
	// Err is the error of the API server.
	Err error
}

func (e *SizeError) Error() string {
	return "the whole object (spec, status and metadata together, limit about 1.5 MiB) is too large to be stored: " + e.Err.Error()
}

// Unwrap returns the error of the API server.
func (e *SizeError) Unwrap() error { return e.Err }

// RightsError reports that the client has neither the permission to patch an object nor the permission to update it.
type RightsError struct {
	// Resource is the kind of the object, followed by the subresource if there is one, for example DeployItem/status.
	Resource string
	// Err is the error of the API server for the patch.
	Err error
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("neither patch nor update of %s is allowed: %v", e.Resource, e.Err)
}

// Unwrap returns the error of the API server.
func (e *RightsError) Unwrap() error { return e.Err }

// IsTooLarge reports whether err means that the object is too large, so that the same write can never succeed. It
// recognizes errors of this package and of the API server: the status 413, and the two messages with status 500 that
// result from the limits of etcd. It returns false for nil.
func IsTooLarge(err error) bool {
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

// wrapSizeError wraps an error in a SizeError if the object is too large. It returns any other error unchanged.
func wrapSizeError(err error) error {
	if IsTooLarge(err) {
		return &SizeError{Err: err}
	}
	return err
}
