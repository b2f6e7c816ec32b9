// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The API server accepts at most 10 000 operations in a JSON patch. If the changes in one object or list need more than
// manyOperations operations, the whole object or list is replaced.
const (
	maxOperations  = 9000
	manyOperations = 500
)

// Operation is one operation of a JSON patch (RFC 6902).
type Operation map[string]any

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a JSON pointer (RFC 6901), built key by key.
type pointer string

func (p pointer) addMember(key string) pointer { return p + "/" + pointer(pointerEscapes.Replace(key)) }
func (p pointer) item(index int) pointer       { return p + "/" + pointer(strconv.Itoa(index)) }

// NewOperations returns the JSON patch that turns one object into another. It never replaces the whole metadata.
func NewOperations(have, want map[string]any) []Operation {
	for many := manyOperations; ; many /= 10 {
		d := differ{many: many}
		d.object("", have, want)
		if len(d.ops) <= maxOperations || many == 0 {
			return d.ops
		}
	}
}

// differ collects the operations of a JSON patch.
type differ struct {
	ops  []Operation
	size int // estimated length of the operations as JSON
	many int // the maximum number of operations per object or list; with more, the whole object or list is replaced
}

func (d *differ) addOperation(op string, at pointer, value any) {
	step := Operation{"op": op, "path": string(at)}
	d.size += len(`{"op":"","path":""},`) + len(op) + len(at)
	if op != "remove" {
		step["value"] = value
		d.size += len(`"value":,`) + len(toText(value))
	}
	d.ops = append(d.ops, step)
}

// object appends the operations that turn the object `have` into `want`. It uses "add" also for members that exist,
// because "add" replaces them.
func (d *differ) object(at pointer, have, want map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, keep := want[key]; !keep {
			d.addOperation("remove", at.addMember(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, exists := have[key]
		if exists && Equal(old, want[key]) {
			continue
		}
		d.value(at.addMember(key), old, want[key], "add")
	}
}

// value appends the operations that turn `have` into `want`. If a single operation of type op that sets the whole value
// is shorter, value appends that operation instead.
func (d *differ) value(at pointer, have, want any, op string) {
	steps, text := len(d.ops), d.size
	switch wanted := want.(type) {
	case map[string]any:
		old, isObject := have.(map[string]any)
		if !isObject {
			d.addOperation(op, at, want)
			return
		}
		d.object(at, old, wanted)
	case []any:
		old, isList := have.([]any)
		if !isList || len(old) == 0 || len(wanted) == 0 {
			d.addOperation(op, at, want)
			return
		}
		d.list(at, old, wanted)
	default:
		d.addOperation(op, at, want)
		return
	}
	if some := len(d.ops) - steps; at != "/metadata" && (some > d.many || some > 1 && d.size-text > len(toText(want))) {
		d.ops, d.size = d.ops[:steps], text
		d.addOperation(op, at, want)
	}
}

// list appends operations that change, remove and add items. It processes the differences in order. When it reaches a
// difference, all earlier items already equal those of the second list. Therefore it uses the indices of the second
// list.
func (d *differ) list(at pointer, have, want []any) {
	for _, edit := range listEdits(have, want) {
		if edit.fromEnd-edit.from == edit.toEnd-edit.to {
			for i := range edit.fromEnd - edit.from {
				if old, item := have[edit.from+i], want[edit.to+i]; !Equal(old, item) {
					d.value(at.item(edit.to+i), old, item, "replace")
				}
			}
			continue
		}
		for range edit.fromEnd - edit.from {
			d.addOperation("remove", at.item(edit.to), nil)
		}
		for i := edit.to; i < edit.toEnd; i++ {
			d.addOperation("add", at.item(i), want[i])
		}
	}
}
