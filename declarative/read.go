// SPDX-License-Identifier: Apache-2.0

package declarative

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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// manifest is one object as a handler wrote it.
type manifest struct {
	body map[string]any
	// source is the Go value of a typed object, which may leave out its kind; nil for text and maps.
	source runtime.Object
	// index is where it is among several that one child stands for; -1: it is alone.
	index int
}

// read turns a child into the objects that it stands for, which are copies. Errors tell neither path nor values.
func read(child any) ([]manifest, error) {
	if isNil(child) {
		return nil, errors.New("is nil")
	}
	var out []manifest
	var err error
	switch c := child.(type) {
	case string:
		out, err = readText([]byte(c))
	case []byte:
		out, err = readText(c)
	case json.RawMessage:
		out, err = readText(c)
	default:
		switch v := reflect.ValueOf(child); v.Kind() {
		case reflect.Slice, reflect.Array:
			return readEach(v)
		case reflect.Struct:
			pointer := reflect.New(v.Type()) // only pointers to objects know their kind
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
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return v.IsNil()
	default:
		return false
	}
}

// readEach reads the elements of a slice.
func readEach(v reflect.Value) ([]manifest, error) {
	out := []manifest{}
	for i := range v.Len() {
		part, err := read(v.Index(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		out = append(out, part...)
	}
	return numbered(out), nil
}

func numbered(all []manifest) []manifest {
	for i := range all {
		all[i].index = i
	}
	return all
}

// readValue reads anything that marshals to an object.
func readValue(child any) ([]manifest, error) {
	raw, err := json.Marshal(child)
	if err != nil {
		return nil, fmt.Errorf("of type %T cannot be encoded", child)
	}
	body := map[string]any{}
	if err := utiljson.Unmarshal(raw, &body); err != nil || body == nil {
		return nil, fmt.Errorf("of type %T is no JSON object", child)
	}
	source, _ := child.(runtime.Object)
	if _, untyped := child.(runtime.Unstructured); untyped {
		source = nil
	}
	return []manifest{{body: body, source: source, index: -1}}, nil
}

// readText reads JSON, or YAML of one or more documents.
func readText(text []byte) ([]manifest, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return readDocument(trimmed)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	out := []manifest{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("is no YAML")
		}
		body, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("is no YAML: %s", yamlFault(err))
		}
		if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			continue // nothing but comments
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
	return numbered(out), nil
}

// yamlFault keeps of an error what tells the place: "line 3". The rest may hold values.
func yamlFault(err error) string {
	text := err.Error()
	_, text, found := strings.Cut(text, "line ")
	line, _, _ := strings.Cut(text, ":")
	if !found || len(line) > 9 {
		return "see its syntax"
	}
	return "line " + line
}

func readDocument(raw []byte) ([]manifest, error) {
	body := map[string]any{}
	if err := utiljson.Unmarshal(raw, &body); err != nil || body == nil {
		return nil, errors.New("is no JSON object")
	}
	return []manifest{{body: body, index: -1}}, nil
}

// expand replaces lists of objects by their items.
func expand(all []manifest) ([]manifest, error) {
	isList := func(m manifest) bool {
		kind, _ := m.body["kind"].(string)
		_, items := m.body["items"].([]any)
		return items && strings.HasSuffix(kind, "List")
	}
	if !slices.ContainsFunc(all, isList) {
		return all, nil
	}
	out := []manifest{}
	for _, m := range all {
		if !isList(m) {
			out = append(out, m)
			continue
		}
		items, _ := m.body["items"].([]any)
		for i, item := range items {
			body, isObject := item.(map[string]any)
			if !isObject {
				return nil, fmt.Errorf("items[%d] is no JSON object", i)
			}
			out = append(out, manifest{body: body, index: -1})
		}
	}
	return numbered(out), nil
}

// fillKind sets apiVersion and kind of a typed object that names none, as Go structs mostly do.
func (o *Options) fillKind(m manifest) {
	kind, hasKind := m.body[fieldKind].(string)
	if m.source == nil || hasKind && kind != "" {
		return
	}
	types := o.Scheme
	if types == nil {
		types = scheme.Scheme
	}
	found, _, err := types.ObjectKinds(m.source)
	if err != nil || len(found) == 0 {
		return // the missing kind is told
	}
	best := slices.IndexFunc(found, func(gvk schema.GroupVersionKind) bool {
		_, err := o.kindOf(gvk)
		return err == nil
	})
	gvk := found[max(best, 0)]
	m.body[fieldAPIVersion], m.body[fieldKind] = gvk.GroupVersion().String(), gvk.Kind
}
