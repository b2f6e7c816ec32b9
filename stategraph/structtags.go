// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// structTag is the key of the tags that FromStruct reads.
const structTag = "graph"

// maxNesting is the maximum depth of nested structs.
const maxNesting = 8

// FromStruct builds a graph from a struct or a pointer to a struct. Each exported field that is a Resource becomes a
// component. The name of the component is the name of the field in lower case with hyphens. For example, the name for
// the field PublicService is public-service. A tag can set another name and list the requirements:
//
//	type Galera struct {
//		Service  stategraph.Resource
//		Config   stategraph.Resource
//		Database stategraph.Resource `graph:"name=db,requires=service;config"`
//	}
//
// A field that is a struct is a group of components. The names of these components begin with the name of the field,
// unless the struct is embedded. Requirements in the tag of the group apply to all components of the group. A
// requirement in a tag inside the group is first looked up in the group, and then in the whole graph. A pointer to a
// struct is a group only if it is embedded or has a tag. The tag "-" excludes a field. Fields of other types are
// ignored. FromStruct returns the errors of Builder.Build, and an error for each tag that cannot be parsed.
func FromStruct(v any) (*Graph, error) { return NewBuilder().AddStruct(v).Build() }

// AddStruct adds the components of a struct. See FromStruct.
func (b *Builder) AddStruct(v any) *Builder {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		b.errs = append(b.errs, fmt.Errorf("a graph can only be built from a struct, not from %T", v))
		return b
	}
	s := &structParser{}
	s.addFields(value, group{}, 0)
	local := map[string]bool{}
	for _, f := range s.found {
		local[f.component] = true
	}
	for _, f := range s.found {
		b.Add(f.component, f.resource, f.resolveRequired(local)...)
	}
	b.errs = append(b.errs, s.faults...)
	return b
}

// structParser collects the components in a struct, and the errors in its tags.
type structParser struct {
	found  []field
	faults []error
}

// group describes a struct whose fields are components.
type group struct {
	prefix   string           // the prefix of the names of components
	path     string           // the path of the struct, for errors
	required []tagRequirement // the requirements that all fields of the struct have
}

// tagRequirement is a requirement in a tag: the name in the tag, and the name prefix of the group that contains the
// tag.
type tagRequirement struct{ name, prefix string }

// field is a component of a struct.
type field struct {
	component string
	resource  Resource
	required  []tagRequirement
}

// resolveRequired returns the full names of the requirements. The full names of all components in the struct are in
// local. If the group of the tag does not contain a required name, the name is already the full name.
func (f field) resolveRequired(local map[string]bool) []string {
	var out []string
	for _, w := range f.required {
		if local[w.prefix+w.name] {
			out = append(out, w.prefix+w.name)
		} else {
			out = append(out, w.name)
		}
	}
	return out
}

// addFields adds the components in all fields of a struct.
func (s *structParser) addFields(value reflect.Value, in group, depth int) {
	if depth > maxNesting {
		s.faults = append(s.faults, fmt.Errorf("%s: structs are nested more than %d levels deep", in.path, maxNesting))
		return
	}
	for i := range value.NumField() {
		s.addField(value.Type().Field(i), value.Field(i), in, depth)
	}
}

// addField adds the component or the group of components in one field.
func (s *structParser) addField(of reflect.StructField, value reflect.Value, in group, depth int) {
	text, tagged := of.Tag.Lookup(structTag)
	if text == "-" {
		return
	}
	path := strings.TrimPrefix(in.path+"."+of.Name, ".")
	parsed, err := parseTag(text)
	if err != nil {
		s.faults = append(s.faults, fmt.Errorf("%s: %w", path, err))
	}
	resource, isResource := asResource(value)
	nested, isGroup := asStruct(value, tagged || of.Anonymous)
	usable := of.IsExported() || of.Anonymous && isGroup && !isResource
	switch {
	case !usable && (tagged || isResource):
		s.faults = append(s.faults, fmt.Errorf("%s: an unexported field cannot be a component; use the tag %q to ignore the field", path, "-"))
	case !usable:
	case isResource:
		name := in.prefix + parsed.nameOr(of.Name)
		s.found = append(s.found, field{component: name, resource: resource, required: slices.Concat(in.required, parsed.required(in.prefix))})
	case isGroup:
		s.addFields(nested, in.newGroup(of, parsed, path), depth+1)
	case tagged:
		s.faults = append(s.faults, fmt.Errorf("%s: a %s is not a resource", path, of.Type))
	}
}

// newGroup returns the group for a field that is a struct.
func (g group) newGroup(of reflect.StructField, t tag, path string) group {
	in := group{prefix: g.prefix, path: path, required: slices.Concat(g.required, t.required(g.prefix))}
	if !of.Anonymous || t.name != "" {
		in.prefix += t.nameOr(of.Name) + "-"
	}
	return in
}

// asResource returns the value of a field as a Resource. The Resource may be nil. The second result is false if the
// type of the field is not a Resource.
func asResource(value reflect.Value) (Resource, bool) {
	wanted := reflect.TypeFor[Resource]()
	switch {
	case value.Type().Implements(wanted):
		if !value.CanInterface() {
			return nil, true
		}
		resource, _ := reflect.TypeAssert[Resource](value)
		return resource, true
	case !reflect.PointerTo(value.Type()).Implements(wanted):
		return nil, false
	case !value.CanInterface():
		return nil, true
	case value.CanAddr():
		return value.Addr().Interface().(Resource), true
	}
	pointer := reflect.New(value.Type())
	pointer.Elem().Set(value)
	return pointer.Interface().(Resource), true
}

// asStruct returns the struct in a field. If `follow` is true, the field may also be a pointer to a struct. The second
// result is false if there is no struct.
func asStruct(value reflect.Value, follow bool) (reflect.Value, bool) {
	if value.Kind() == reflect.Pointer && follow {
		value = value.Elem() // invalid if the pointer is nil
	}
	return value, value.Kind() == reflect.Struct
}

// tag is a parsed struct tag.
type tag struct {
	name     string
	requires []string
}

// nameOr returns the name in the tag, or the name of the field if the tag contains none.
func (t tag) nameOr(field string) string {
	if t.name != "" {
		return t.name
	}
	return toKebab(field)
}

func (t tag) required(prefix string) []tagRequirement {
	out := make([]tagRequirement, len(t.requires))
	for i, name := range t.requires {
		out[i] = tagRequirement{name: name, prefix: prefix}
	}
	return out
}

// parseTag parses a tag such as "name=db,requires=service;config".
func parseTag(text string) (tag, error) {
	var t tag
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch value = strings.TrimSpace(value); {
		case key == "" && value == "":
		case key == "name" && value != "":
			t.name = value
		case key == "requires" && value != "":
			for name := range strings.SplitSeq(value, ";") {
				if name = strings.TrimSpace(name); name != "" {
					t.requires = append(t.requires, name)
				}
			}
		default:
			return t, fmt.Errorf(`the tag has %q, want "name=…" or "requires=…;…"`, part)
		}
	}
	return t, nil
}

// toKebab converts the name of a Go field to lower case with hyphens. For example, it converts "HAProxy" to "ha-proxy"
// and "TLSCert2" to "tls-cert2".
func toKebab(name string) string {
	runes := []rune(name)
	var out strings.Builder
	for i, r := range runes {
		if r == '_' {
			out.WriteByte('-')
			continue
		}
		newWord := i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if newWord {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
