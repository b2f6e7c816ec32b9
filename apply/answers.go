// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// result classifies the outcome of a step. A step is a request for an object, or a call of Options.MayHeal.
type result string

const (
	resultOK        result = ""
	resultDenied    result = "denied" // Options.MayHeal did not allow the correction
	resultGone      result = "gone"   // the object is proved not to exist
	resultExists    result = "exists"
	resultConflict  result = "conflict"
	resultMismatch  result = "mismatch" // the name belongs to another object
	resultImmutable result = "immutable"
	resultFailed    result = "failed"
)

// resultOf classifies the outcome of a step. The argument `absent` is what the error means for the existence of the
// object.
func resultOf(absent absence.Meaning, err error) result {
	switch {
	case err == nil:
		return resultOK
	case absence.IsDenied(err):
		return resultFailed
	case isAnother(err):
		return resultMismatch
	case absent.IsProved():
		return resultGone
	case apierrors.IsAlreadyExists(err):
		return resultExists
	case apierrors.IsConflict(err):
		return resultConflict
	case isImmutable(err):
		return resultImmutable
	}
	return resultFailed
}

// isRejected reports whether the API server rejected a write, so that the write had no effect.
func isRejected(err error) bool {
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

func causesOf(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// isAnother reports whether the error means that the object with the expected UID no longer exists. Another object may
// have the same name now.
func isAnother(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusConflict:
		return strings.Contains(status.Status().Message, "uid mismatch")
	case http.StatusUnprocessableEntity:
		return slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
	}
	return false
}

// immutableMessage matches the API server's message about the change of an immutable field.
var immutableMessage = regexp.MustCompile(`immutable|(?:may|can|must) ?not (?:be )?(?:chang|modif|updat|unset)|updates? (?:to|from|may not)`)

// isImmutable reports whether the API server rejected the change of an immutable field. It ignores values that the API
// server quotes.
func isImmutable(err error) bool {
	return apierrors.IsInvalid(err) && !absence.IsDenied(err) && slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return immutableMessage.MatchString(quotedValue.ReplaceAllString(cause.Message, ""))
	})
}

// maxImmutableFields limits the number of fields that an error names.
const maxImmutableFields = 3

// quotedField matches a quoted field name in the API server's error about an immutable field. The quoted fields are
// those that may be changed.
var quotedField = regexp.MustCompile(`'([A-Za-z]+)'`)

// immutableField returns the error for an object whose manifest changes an immutable field. The API server often names
// only the part of the object that contains the field, such as spec. If live is not nil, immutableField compares the
// manifest with live to find the field itself.
func immutableField(o *object, live *unstructured.Unstructured, refused error, hide *redact.Redactor) *Error {
	out := classify(o.ref, refused, hide)
	out.Immutable, out.Reason = true, "cannot be changed, because the field is immutable"
	if live == nil {
		return out
	}
	mutable := map[string]bool{}
	for _, cause := range causesOf(refused) {
		for _, found := range quotedField.FindAllStringSubmatch(cause.Message, -1) {
			mutable[found[1]] = true
		}
	}
	found := fields.Unmatched(live.Object, o.Object.Object, out.Path, mutable)
	if len(found) > 0 {
		out.Path = strings.Join(found[:min(len(found), maxImmutableFields)], ", ")
	}
	return out
}

// defaultedField returns the error for a manifest that cannot be written, because the API server set a field by default
// that does not fit the new manifest. An example is spec.strategy.rollingUpdate of a Deployment that changes to Recreate.
// Server-side apply removes only fields that the item has applied, and the strategies that merge remove none. It returns
// nil for other errors.
func defaultedField(o *object, refused error, hide *redact.Redactor) *Error {
	if o.Strategy == Update || o.Strategy == Patch || !apierrors.IsInvalid(refused) {
		return nil
	}
	for _, cause := range causesOf(refused) {
		path := strings.Split(cause.Field, ".")
		_, given, err := unstructured.NestedFieldNoCopy(o.Object.Object, path...)
		if cause.Type == metav1.CauseType(field.ErrorTypeForbidden) && !given && err == nil && len(path) > 1 && !strings.ContainsAny(cause.Field, "[]") {
			out := classify(o.ref, refused, hide)
			out.Reason += "; if the API server set this field by default, use the strategy update for this object"
			if o.isTracked() {
				out.Reason += ", or two steps: first add the field to the manifest, then remove it together with this change"
			}
			return out
		}
	}
	return nil
}

// pathElement matches one element of a path in an error of the API server: a field, an index or a key.
var pathElement = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// contains reports whether a manifest contains the field at a path, such as "spec.ports[0].port". It returns true for all
// fields of list items, because the API server numbers the items of the merged list.
func contains(manifest map[string]any, path string) bool {
	value := any(manifest)
	for _, element := range pathElement.FindAllString(path, -1) {
		switch below := value.(type) {
		case map[string]any:
			found := false
			if value, found = below[strings.Trim(element, "[]")]; !found {
				return false
			}
		case []any:
			return true
		default:
			return false
		}
	}
	return true
}
