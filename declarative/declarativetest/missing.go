// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// missing returns the paths of the wanted fields that an observed object lacks or that have another value there.
func missing(wanted, live map[string]any) []string {
	c := &comparison{}
	c.fields("", folded(wanted), folded(live))
	return c.paths
}

// folded returns an object with the string data of a Secret in the form that the API server stores.
func folded(object map[string]any) map[string]any {
	texts, found := object["stringData"].(map[string]any)
	if object["kind"] != "Secret" || !found {
		return object
	}
	out := maps.Clone(object)
	data, _ := object["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, _ := value.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(out, "stringData")
	out["data"] = data
	return out
}

// comparison collects paths.
type comparison struct{ paths []string }

// fields compares the wanted fields of an object and ignores all others.
func (c *comparison) fields(path string, wanted, live map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		below := path + "." + key
		if strings.ContainsAny(key, "./") {
			below = path + "[" + key + "]"
		}
		value, found := live[key]
		switch {
		case below == ".metadata.namespace" && !found: // the library filled it in, but the kind has none
		case !found:
			c.paths = append(c.paths, below)
		default:
			c.value(below, wanted[key], value)
		}
	}
}

func (c *comparison) value(path string, wanted, live any) {
	switch w := wanted.(type) {
	case map[string]any:
		if l, isMap := live.(map[string]any); isMap {
			c.fields(path, w, l)
			return
		}
	case []any:
		if l, isList := live.([]any); isList {
			c.list(path, w, l)
			return
		}
	default:
		if sameScalar(path, wanted, live) {
			return
		}
	}
	c.paths = append(c.paths, path)
}

// list compares lists. Of lists of objects it compares only the wanted elements, and all other lists as a whole.
func (c *comparison) list(path string, wanted, live []any) {
	keys := keysOf(wanted)
	if len(wanted) == 0 || keys == nil {
		if !reflect.DeepEqual(wanted, live) && (len(wanted) != len(live) || !c.each(path, wanted, live)) {
			c.paths = append(c.paths, path)
		}
		return
	}
	for _, element := range wanted {
		id := idOf(element, keys)
		at := slices.IndexFunc(live, func(other any) bool { return idOf(other, keys) == id })
		below := fmt.Sprintf("%s[%s]", path, id)
		if at < 0 {
			c.paths = append(c.paths, below)
			continue
		}
		c.value(below, element, live[at])
	}
}

// each compares lists of the same length, element by element. It reports whether they are equal, regardless of how
// numbers are written.
func (c *comparison) each(path string, wanted, live []any) bool {
	one := &comparison{}
	for i := range wanted {
		one.value(path, wanted[i], live[i])
	}
	return len(one.paths) == 0
}

// identifying lists the sets of fields that identify elements of lists in the built-in kinds. The first set that all
// elements have is used.
var identifying = [][]string{
	{"name"},
	{"containerPort", "protocol"},
	{"port", "protocol"},
	{"mountPath"},
	{"devicePath"},
	{"topologyKey", "whenUnsatisfiable"},
	{"ip"},
	{"uid"},
	{"type"},
}

// keysOf returns the fields that identify the elements of a list, or nil if there are none.
func keysOf(list []any) []string {
	for _, keys := range identifying {
		has := func(element any) bool {
			fields, _ := element.(map[string]any)
			return fields[keys[0]] != nil
		}
		if !slices.ContainsFunc(list, func(element any) bool { return !has(element) }) {
			return keys
		}
	}
	return nil
}

func idOf(element any, keys []string) string {
	fields, _ := element.(map[string]any)
	parts := []string{}
	for _, key := range keys {
		value := fields[key]
		if key == "protocol" && value == nil {
			value = "TCP"
		}
		parts = append(parts, fmt.Sprint(value))
	}
	return strings.Join(parts, "/")
}

// sameScalar compares values that are neither objects nor lists.
func sameScalar(path string, a, b any) bool {
	if a == b {
		return true
	}
	x, xIsNumber := number(a)
	y, yIsNumber := number(b)
	if xIsNumber && yIsNumber {
		return x == y
	}
	if !strings.Contains(path, ".limits.") && !strings.Contains(path, ".requests.") && !strings.HasSuffix(path, ".sizeLimit") {
		return false
	}
	p, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	q, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && p.Cmp(q) == 0
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
