// SPDX-License-Identifier: Apache-2.0

// Package objects reads Kubernetes objects from Go values, JSON and YAML.
package objects

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/internal/lists"
)

// Object is one of the objects that Read returns.
type Object struct {
	// Body is a copy of the object as a map. Its whole numbers are int64.
	Body map[string]any
	// Source is the Go value of a typed object, whose TypeMeta may be empty. Source is nil for text and maps.
	Source runtime.Object
	// Place is the position of the object, such as "[2]", if the value that was read is a list. It is empty for a
	// single object.
	Place string
}

// Read returns the objects that a value contains. The value may be a typed object, *unstructured.Unstructured, a map,
// or any other value that marshals to a JSON object. It may be a string, []byte or json.RawMessage with JSON or YAML.
// It may also be a slice of such values. A list object, such as a corev1.PodList, is replaced by its items. Errors do
// not contain values of fields.
func Read(child any) ([]Object, error) {
	if isNil(child) {
		return nil, errors.New("is nil")
	}
	var out []Object
	var err error
	switch c := child.(type) {
	case string:
		out, err = readText([]byte(c))
	case []byte:
		out, err = readText(c)
	case json.RawMessage:
		out, err = readText(c)
	default:
		v := reflect.ValueOf(child)
		if kind := v.Kind(); kind == reflect.Slice || kind == reflect.Array {
			return readEach(v)
		} else if kind == reflect.Struct {
			pointer := reflect.New(v.Type()) // only pointers implement runtime.Object
			pointer.Elem().Set(v)
			child = pointer.Interface()
		}
		out, err = readValue(child)
	}
	if err != nil {
		return nil, err
	}
	return expand(out)
}

func isNil(child any) bool {
	v := reflect.ValueOf(child)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map:
		return v.IsNil()
	default:
		return false
	}
}

// readEach reads the elements of a slice.
func readEach(v reflect.Value) ([]Object, error) {
	out := []Object{}
	for i := range v.Len() {
		part, err := Read(v.Index(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, part...)
	}
	return setPlaces(out), nil
}

func setPlaces(all []Object) []Object {
	for i := range all {
		all[i].Place = fmt.Sprintf("[%d]", i)
	}
	return all
}

// readValue reads any value that marshals to a JSON object.
func readValue(child any) ([]Object, error) {
	raw, err := json.Marshal(child)
	if err != nil {
		return nil, fmt.Errorf("value of type %T cannot be encoded", child)
	}
	body := map[string]any{}
	if err := utiljson.Unmarshal(raw, &body); err != nil || body == nil {
		return nil, fmt.Errorf("value of type %T is not a JSON object", child)
	}
	source, _ := child.(runtime.Object)
	if _, untyped := child.(runtime.Unstructured); untyped {
		source = nil
	}
	return []Object{{Body: body, Source: source}}, nil
}

// readText reads JSON, or YAML with one or more documents.
func readText(text []byte) ([]Object, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return readDocument(trimmed)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	out := []Object{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("is not valid YAML")
		}
		body, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("is not valid YAML: %s", formatYAMLError(err))
		}
		if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			continue // the document contains only comments
		}
		part, err := readDocument(body)
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	switch len(out) {
	case 0:
		return nil, errors.New("is empty")
	case 1:
		return out, nil
	}
	return setPlaces(out), nil
}

// formatYAMLError returns the location in an error, such as "line 3". It omits the rest of the text, which may contain
// values of fields.
func formatYAMLError(err error) string {
	text := err.Error()
	_, text, found := strings.Cut(text, "line ")
	line, _, _ := strings.Cut(text, ":")
	if !found || len(line) > 9 {
		return "syntax error"
	}
	return "line " + line
}

func readDocument(raw []byte) ([]Object, error) {
	body := map[string]any{}
	if err := utiljson.Unmarshal(raw, &body); err != nil || body == nil {
		return nil, errors.New("is not a JSON object")
	}
	return []Object{{Body: body}}, nil
}

// expand replaces list objects by their items.
func expand(all []Object) ([]Object, error) {
	found := false
	out := []Object{}
	for _, m := range all {
		if typed := m.listTypedItems(); typed != nil {
			return readEach(reflect.ValueOf(typed))
		}
		if !isList(m.Body) {
			out = append(out, m)
			continue
		}
		found = true
		items, err := lists.Flatten(m.Body, isList)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			out = append(out, Object{Body: item.Body})
		}
	}
	if found {
		return setPlaces(out), nil
	}
	return out, nil
}

// isList reports whether an object is a list. Other kinds may also have a field "items".
func isList(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	return strings.HasSuffix(kind, "List") && lists.IsList(object)
}

// listTypedItems returns the items of a list in the form of a Go struct without a kind. It returns nil for any other
// object.
func (m Object) listTypedItems() []runtime.Object {
	if kind, _ := m.Body["kind"].(string); kind != "" || m.Source == nil || !meta.IsListType(m.Source) {
		return nil
	}
	items, err := meta.ExtractList(m.Source)
	if err != nil {
		return nil
	}
	return items
}

// FillKind sets apiVersion and kind of a typed object if its kind is empty, as is usual for Go structs. The scheme
// types maps Go types to kinds. If types is nil, the scheme of the built-in kinds is used. If the scheme has several
// kinds for the type, FillKind uses the first kind for which prefer returns true, or else the first kind.
func (m Object) FillKind(types *runtime.Scheme, prefer func(schema.GroupVersionKind) bool) {
	kind, hasKind := m.Body["kind"].(string)
	if m.Source == nil || hasKind && kind != "" {
		return
	}
	if types == nil {
		types = scheme.Scheme
	}
	found, _, err := types.ObjectKinds(m.Source)
	if err != nil || len(found) == 0 {
		return
	}
	gvk := found[max(slices.IndexFunc(found, prefer), 0)]
	m.Body["apiVersion"], m.Body["kind"] = gvk.GroupVersion().String(), gvk.Kind
}
