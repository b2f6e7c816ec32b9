// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// serverFields are the fields of metadata that only the API server sets.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid",
}

// optionalFields are the fields of metadata that count as unset if they are empty.
var optionalFields = append([]string{"labels", "annotations", "ownerReferences", "finalizers", "generateName", "namespace"}, serverFields...)

// clean removes fields that the handler did not set on purpose. It removes null fields, because null means "not set by
// me". It also removes fields that the JSON of a Go struct contains even if they are unset: a status with only zero
// values, and empty metadata fields.
func clean(body map[string]any) {
	dropNull(body)
	if status, found := body["status"]; found && isZero(status) {
		delete(body, "status")
	}
	metadata, _ := body["metadata"].(map[string]any)
	for _, field := range optionalFields {
		if isZero(metadata[field]) {
			delete(metadata, field)
		}
	}
}

// dropNull removes null fields at any depth. It does not remove null elements of lists, because positions in a list
// matter.
func dropNull(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for _, field := range v {
			dropNull(field)
		}
	case []any:
		for _, element := range v {
			dropNull(element)
		}
	}
}

// isZero reports whether a value contains only zero values of Go types.
func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, field := range v {
			if !isZero(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return value == "" || value == false || value == int64(0) || value == float64(0)
}

// isMinimal reports whether an object consists only of apiVersion, kind, namespace and name.
func isMinimal(m objects.Object) bool {
	metadata, _ := m.Body["metadata"].(map[string]any)
	for field := range metadata {
		if field != "name" && field != "namespace" {
			return false
		}
	}
	if m.Source != nil {
		return isUnset(reflect.ValueOf(m.Source))
	}
	for field := range m.Body {
		if field != fieldAPIVersion && field != fieldKind && field != "metadata" {
			return false
		}
	}
	return true
}

// isUnset reports whether all fields of a typed object are unset, except its metadata and its status. It examines the
// Go value, because the JSON contains some fields even if they are unset, such as spec: {}.
func isUnset(source reflect.Value) bool {
	if source.Kind() == reflect.Pointer {
		source = source.Elem()
	}
	if source.Kind() != reflect.Struct {
		return false
	}
	for i := range source.NumField() {
		switch source.Field(i).Type() {
		case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]():
			continue
		}
		if source.Type().Field(i).Name != "Status" && !source.Field(i).IsZero() {
			return false
		}
	}
	return true
}

// checkFields calls the function `fault` for each field of the object that a handler must not set.
func checkFields(body map[string]any, fault func(path, format string, args ...any)) {
	if status, found := body["status"]; found {
		fault(getFirstPath(".status", status), "must not be set, because only the controller of the child writes its status")
	}
	raw, found := body["metadata"]
	metadata, isMap := raw.(map[string]any)
	if found && !isMap {
		fault(".metadata", "must be an object")
		return
	}
	for _, field := range serverFields {
		if _, found := metadata[field]; found {
			fault(".metadata."+field, "is set by the API server: return only the fields that the child needs, not an observed child")
		}
	}
	if _, found := metadata["generateName"]; found {
		fault(".metadata.generateName", "must not be set: a child needs a name that is the same in every call, see declarative.Name")
	}
	checkMetadata(metadata, fault)
}

// checkMetadata checks the types of the metadata fields that the library uses. It also refuses labels and annotations
// that are reserved for the library.
func checkMetadata(metadata map[string]any, fault func(path, format string, args ...any)) {
	for _, field := range []string{"name", "namespace"} {
		if value, found := metadata[field]; found {
			if _, isText := value.(string); !isText {
				fault(".metadata."+field, "must be a string")
			}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		checkTexts(metadata, field, fault)
	}
}

// checkTexts checks the labels or the annotations. All values must be strings, and no key may be reserved for the
// library.
func checkTexts(metadata map[string]any, field string, fault func(path, format string, args ...any)) {
	raw, found := metadata[field]
	values, isMap := raw.(map[string]any)
	if found && !isMap {
		fault(".metadata."+field, "must be an object")
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := ".metadata." + field + "[" + key + "]"
		if _, isText := values[key].(string); !isText {
			fault(path, "must be a string")
		}
		if ownership.IsReserved(key) {
			fault(path, "labels and annotations with the prefix %s are reserved for the library", ownership.Prefix)
		}
	}
}

// getFirstPath returns the path of the first non-zero field inside a value.
func getFirstPath(path string, value any) string {
	fields, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !isZero(fields[key]) {
			return getFirstPath(path+field(key), fields[key])
		}
	}
	return path
}

// field returns the element of a JSON path for a field name. A name with special characters is put in brackets.
func field(key string) string {
	if key == "" || strings.ContainsAny(key, "./[]\"'` ") {
		return "[" + key + "]"
	}
	return "." + key
}
