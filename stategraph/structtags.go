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

// maxNesting is how deep structs may be nested.
const maxNesting = 8

// FromStruct builds a graph of the exported fields of a struct, or pointer to one, that are resources. The name of a
// component is that of the field in the style of Kubernetes, so PublicService becomes public-service. A tag changes the
// name, and lists requirements:
//
//	type Galera struct {
//		Service  stategraph.Resource
//		Config   stategraph.Resource
//		Database stategraph.Resource `graph:"name=db,requires=service;config"`
//	}
//
// A struct within the struct is a group of components. Their names begin with that of the field, except in an embedded
// struct. All of them require what the tag of the group requires, and names in their tags are looked for in the group
// first. A pointer to a struct is a group if it is embedded or has a tag. The tag "-" leaves a field out. Fields of
// other types are ignored. FromStruct returns the errors of Builder.Build, and an error for a tag that cannot be read.
func FromStruct(v any) (*Graph, error) { return NewGraph().AddStruct(v).Build() }

// AddStruct adds the fields of a struct; see FromStruct.
func (b *Builder) AddStruct(v any) *Builder {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		b.faults = append(b.faults, fmt.Errorf("a graph is made of a struct, not of a %T", v))
		return b
	}
	s := &structure{}
	s.fields(value, group{}, 0)
	local := map[string]bool{}
	for _, f := range s.found {
		local[f.component] = true
	}
	for _, f := range s.found {
		b.Add(f.component, f.resource, f.resolved(local)...)
	}
	b.faults = append(b.faults, s.faults...)
	return b
}

// structure collects what is found in a struct.
type structure struct {
	found  []field
	faults []error
}

// group is the part of a struct that a field belongs to.
type group struct {
	prefix   string   // of the names of components
	path     string   // for people
	required []wanted // by all fields
}

// wanted is a requirement of a tag, and the prefix of the group that contains the tag.
type wanted struct{ name, prefix string }

// field is a component of a struct.
type field struct {
	component string
	resource  Resource
	required  []wanted
}

// resolved returns the requirements by their full names. Each name is looked for in its group first, and then
// everywhere.
func (f field) resolved(local map[string]bool) []string {
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

// fields goes through one struct.
func (s *structure) fields(value reflect.Value, in group, depth int) {
	if depth > maxNesting {
		s.faults = append(s.faults, fmt.Errorf("%s: structs lie more than %d deep in each other", in.path, maxNesting))
		return
	}
	for i := range value.NumField() {
		s.field(value.Type().Field(i), value.Field(i), in, depth)
	}
}

// field adds one field.
func (s *structure) field(of reflect.StructField, value reflect.Value, in group, depth int) {
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
		s.faults = append(s.faults, fmt.Errorf("%s: only an exported field can be a component; the tag %q leaves one out", path, "-"))
	case !usable:
	case isResource:
		name := in.prefix + parsed.nameOr(of.Name)
		s.found = append(s.found, field{component: name, resource: resource, required: slices.Concat(in.required, parsed.required(in.prefix))})
	case isGroup:
		s.fields(nested, in.within(of, parsed, path), depth+1)
	case tagged:
		s.faults = append(s.faults, fmt.Errorf("%s: a %s is no resource", path, of.Type))
	}
}

// within returns the group for a struct that is a field.
func (g group) within(of reflect.StructField, t tag, path string) group {
	in := group{prefix: g.prefix, path: path, required: slices.Concat(g.required, t.required(g.prefix))}
	if !of.Anonymous || t.name != "" {
		in.prefix += t.nameOr(of.Name) + "-"
	}
	return in
}

// asResource reports whether a field is meant to be a component. The resource may be nil.
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

// asStruct returns the struct that a field is. It follows pointers only where the author asks for it, because anything
// may be behind one.
func asStruct(value reflect.Value, follow bool) (reflect.Value, bool) {
	if value.Kind() == reflect.Pointer && follow {
		value = value.Elem() // invalid when nil
	}
	return value, value.Kind() == reflect.Struct
}

// tag is the content of a tag.
type tag struct {
	name     string
	requires []string
}

// nameOr returns the name, or that of the field.
func (t tag) nameOr(field string) string {
	if t.name != "" {
		return t.name
	}
	return kebab(field)
}

func (t tag) required(prefix string) []wanted {
	out := make([]wanted, len(t.requires))
	for i, name := range t.requires {
		out[i] = wanted{name: name, prefix: prefix}
	}
	return out
}

// parseTag reads "name=db,requires=service;config".
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

// kebab converts the name of a Go field to the style of Kubernetes, such as "HAProxy" to "ha-proxy" and "TLSCert2" to
// "tls-cert2".
func kebab(name string) string {
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
