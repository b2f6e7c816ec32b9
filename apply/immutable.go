// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// maxImmutableFields limits how many fields an error names.
const maxImmutableFields = 3

// quotedField matches a field that the API server names as mutable.
var quotedField = regexp.MustCompile(`'([A-Za-z]+)'`)

// immutableField returns the error for a change of an immutable field. The API server often names only the part of
// the object that contains the field, so the object is read to find it.
func (r *run) immutableField(ctx context.Context, o *object, refused error) *Error {
	out := classify(o.ref, refused, r.hide)
	out.Immutable = true
	mutable := map[string]bool{}
	for _, cause := range causesOf(refused) {
		for _, found := range quotedField.FindAllStringSubmatch(cause.Message, -1) {
			mutable[found[1]] = true
		}
	}
	out.Reason = "cannot be changed, the field is immutable"
	live, err := r.read(ctx, o.ref)
	if err != nil || live == nil {
		return out
	}
	fields := changedFields(o.Object.Object, live.Object, out.Path, mutable)
	if len(fields) > maxImmutableFields {
		fields = fields[:maxImmutableFields]
	}
	if len(fields) > 0 {
		out.Path = strings.Join(fields, ", ")
	}
	return out
}

// changedFields returns the paths of the fields that differ from those of a live object. below is the path of both,
// and mutable names the fields directly below it that are left out.
func changedFields(wanted, live map[string]any, below string, mutable map[string]bool) []string {
	var from, to any = wanted, live
	for name := range strings.SplitSeq(strings.Trim(below, "."), ".") {
		a, isMap := from.(map[string]any)
		b, isMapToo := to.(map[string]any)
		if below == "" || !isMap || !isMapToo || a[name] == nil {
			return nil
		}
		from, to = a[name], b[name]
	}
	fields, isMap := from.(map[string]any)
	if !isMap {
		return nil
	}
	fields = maps.Clone(fields)
	maps.DeleteFunc(fields, func(name string, _ any) bool { return mutable[name] })
	return changed(nil, below, fields, to)
}

// changed collects the paths of values that differ from the wanted ones. Values that are not wanted do not count.
func changed(found []string, path string, wanted, live any) []string {
	switch w := wanted.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(w)) {
				found = changed(found, path+"."+name, w[name], l[name])
			}
			return found
		}
	case []any:
		if l, ok := live.([]any); ok && len(l) == len(w) {
			for i := range w {
				found = changed(found, fmt.Sprintf("%s[%d]", path, i), w[i], l[i])
			}
			return found
		}
	}
	if !reflect.DeepEqual(wanted, live) {
		found = append(found, path)
	}
	return found
}
