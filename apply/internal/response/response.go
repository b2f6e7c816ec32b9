// SPDX-License-Identifier: Apache-2.0

// Package response classifies the answers of an API server to the requests for an object.
package response

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/absence"
)

// Class classifies the answer to a request for an object.
type Class string

const (
	// ClassOK means that the request succeeded. A read has also succeeded if it proved that the object does not exist.
	ClassOK Class = ""
	// ClassGone means that the object is proved not to exist.
	ClassGone Class = "gone"
	// ClassExists means that an object with the name already exists.
	ClassExists Class = "exists"
	// ClassConflict means that another writer changed the object, or owns a field in the request.
	ClassConflict Class = "conflict"
	// ClassMismatch means that the object with the name does not have the UID in the request.
	ClassMismatch Class = "mismatch"
	// ClassImmutable means that the request changes an immutable field.
	ClassImmutable Class = "immutable"
	// ClassFailed means any other error.
	ClassFailed Class = "failed"
)

// GetClass classifies the error of a request. The argument absent is what the error means for the existence of the
// object.
func GetClass(absent absence.Meaning, err error) Class {
	switch {
	case err == nil:
		return ClassOK
	case absence.IsDenied(err):
		return ClassFailed
	case isMismatch(err):
		return ClassMismatch
	case absent.IsProved():
		return ClassGone
	case apierrors.IsAlreadyExists(err):
		return ClassExists
	case apierrors.IsConflict(err):
		return ClassConflict
	case IsImmutable(err):
		return ClassImmutable
	}
	return ClassFailed
}

// IsRejected reports whether the API server rejected a write, so that the write had no effect.
func IsRejected(err error) bool {
	status := apierrors.APIStatus(nil)
	switch {
	case !errors.As(err, &status):
		return false
	case absence.IsDenied(err), apierrors.IsConflict(err):
		return true
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// ListCauses returns the causes in the API server's answer.
func ListCauses(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// isMismatch reports whether the error means that the object with the expected UID no longer exists. Another object may
// have the same name now.
func isMismatch(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusConflict:
		return strings.Contains(status.Status().Message, "uid mismatch")
	case http.StatusUnprocessableEntity:
		return slices.ContainsFunc(ListCauses(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
	}
	return false
}

// QuotedValue matches a value that the API server quotes in a message. The end of the value may be missing because the
// API server truncates long messages.
var QuotedValue = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*(?:"|\\?$)|&?value\.\S+`)

// immutableMessage matches the API server's message about the change of an immutable field.
var immutableMessage = regexp.MustCompile(`immutable|(?:may|can|must) ?not (?:be )?(?:chang|modif|updat|unset)|updates? (?:to|from|may not)`)

// IsImmutable reports whether the API server rejected the change of an immutable field. It ignores values that the API
// server quotes.
func IsImmutable(err error) bool {
	return apierrors.IsInvalid(err) && !absence.IsDenied(err) && slices.ContainsFunc(ListCauses(err), func(cause metav1.StatusCause) bool {
		return immutableMessage.MatchString(QuotedValue.ReplaceAllString(cause.Message, ""))
	})
}

// IsAmbiguous reports whether the API server rejected an object because two items of a list have the same name, or
// because an item needs a name to be told from another one. This happens if another client has changed the key of an
// item, such as the number of a port: server-side apply then adds the item of the manifest beside the changed item.
func IsAmbiguous(err error) bool {
	return apierrors.IsInvalid(err) && !absence.IsDenied(err) && slices.ContainsFunc(ListCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueDuplicate || cause.Type == metav1.CauseTypeFieldValueRequired && strings.HasSuffix(cause.Field, "].name")
	})
}

// IsDryRunRejected reports whether a dry run failed because a webhook does not support dry runs. In that case, it is
// unknown whether the write would change the object.
func IsDryRunRejected(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// removedVersion matches the API server's error if an entry of managedFields has an API version that the
// CustomResourceDefinition does not contain any more. The API server then rejects each write of the object. If the
// definition contains the version but does not serve it, writes succeed.
var removedVersion = regexp.MustCompile(`request to convert CR to an invalid group/version: (\S+)`)

// GetRemovedVersion returns the API version in managedFields that the CustomResourceDefinition does not contain any
// more, if this is the reason for the error. Otherwise, it returns "".
func GetRemovedVersion(err error) string {
	if err == nil {
		return ""
	}
	if found := removedVersion.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return ""
}
