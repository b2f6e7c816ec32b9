// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// maxImmutableFields limits the number of fields that an error names.
const maxImmutableFields = 3

// quotedField matches a quoted field name in the API server's error about an immutable field. The quoted fields are
// those that may be changed.
var quotedField = regexp.MustCompile(`'([A-Za-z]+)'`)

// newImmutableError returns the error for an object whose manifest changes an immutable field. The API server often
// names only the part of the object that contains the field, such as spec. If live is not nil, newImmutableError
// compares the manifest with live to find the field itself.
func newImmutableError(m *decide.Manifest, live *unstructured.Unstructured, refused error, hide *redact.Redactor) *Error {
	out := newRequestError(m.Ref, refused, hide)
	out.Immutable, out.Message = true, "cannot be changed, because the field is immutable"
	if live == nil {
		return out
	}
	mutable := map[string]bool{}
	for _, cause := range response.ListCauses(refused) {
		for _, found := range quotedField.FindAllStringSubmatch(cause.Message, -1) {
			mutable[found[1]] = true
		}
	}
	found := fields.FindUnmatched(live.Object, m.Object.Object, out.Path, mutable)
	if len(found) > 0 {
		out.Path = strings.Join(found[:min(len(found), maxImmutableFields)], ", ")
	}
	return out
}

// newDefaultedError returns the error for a manifest that cannot be written, because the API server set a field by
// default that does not fit the new manifest. An example is spec.strategy.rollingUpdate of a Deployment that changes to
// Recreate. Server-side apply removes only fields that the item has applied, and the strategies that merge remove none.
// It returns nil for other errors.
func newDefaultedError(m *decide.Manifest, refused error, hide *redact.Redactor) *Error {
	if m.Strategy.IsWhole || !apierrors.IsInvalid(refused) {
		return nil
	}
	for _, cause := range response.ListCauses(refused) {
		path := strings.Split(cause.Field, ".")
		_, given, err := unstructured.NestedFieldNoCopy(m.Object.Object, path...)
		if cause.Type == metav1.CauseType(field.ErrorTypeForbidden) && !given && err == nil && len(path) > 1 && !strings.ContainsAny(cause.Field, "[]") {
			out := newRequestError(m.Ref, refused, hide)
			out.Message += "; if the API server set this field by default, use the strategy update for this object"
			if m.Strategy.IsTracked {
				out.Message += ", or two steps: first add the field to the manifest, then remove it together with this change"
			}
			return out
		}
	}
	return nil
}

// pathElement matches one element of a path in an error of the API server: a field, an index or a key.
var pathElement = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// hasField reports whether a manifest contains the field at a path, such as "spec.ports[0].port". It returns true for
// all fields of list items, because the API server numbers the items of the merged list.
func hasField(manifest map[string]any, path string) bool {
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
