// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"encoding/json"
	"errors"
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

// operation is one operation of a JSON patch (RFC 6902).
type operation map[string]any

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a JSON pointer (RFC 6901), built key by key.
type pointer string

func (p pointer) member(key string) pointer { return p + "/" + pointer(pointerEscapes.Replace(key)) }
func (p pointer) item(index int) pointer    { return p + "/" + pointer(strconv.Itoa(index)) }

// operations computes the JSON patch between two bodies.
func operations(have, want map[string]any) []operation {
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
	ops  []operation
	size int // estimated length of the operations as JSON
	many int // the maximum number of operations per object or list; with more, the whole object or list is replaced
}

func (d *differ) emit(op string, at pointer, value any) {
	step := operation{"op": op, "path": string(at)}
	d.size += len(`{"op":"","path":""},`) + len(op) + len(at)
	if op != "remove" {
		step["value"] = value
		d.size += len(`"value":,`) + size(value)
	}
	d.ops = append(d.ops, step)
}

// object appends the operations that turn the object `have` into `want`. It uses "add" also for members that exist,
// because "add" replaces them.
func (d *differ) object(at pointer, have, want map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, keep := want[key]; !keep {
			d.emit("remove", at.member(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, exists := have[key]
		if exists && Equal(old, want[key]) {
			continue
		}
		d.value(at.member(key), old, want[key], "add")
	}
}

// value appends the operations that turn `have` into `want`. If a single operation that sets the whole value is
// shorter, value appends that operation instead. The argument `op` is the type of that operation.
func (d *differ) value(at pointer, have, want any, op string) {
	steps, text := len(d.ops), d.size
	switch wanted := want.(type) {
	case map[string]any:
		old, isObject := have.(map[string]any)
		if !isObject {
			d.emit(op, at, want)
			return
		}
		d.object(at, old, wanted)
	case []any:
		old, isList := have.([]any)
		if !isList || len(old) == 0 || len(wanted) == 0 {
			d.emit(op, at, want)
			return
		}
		d.list(at, old, wanted)
	default:
		d.emit(op, at, want)
		return
	}
	if some := len(d.ops) - steps; at != "/"+fieldMetadata && (some > d.many || some > 1 && d.size-text > size(want)) {
		d.ops, d.size = d.ops[:steps], text
		d.emit(op, at, want)
	}
}

// list appends operations that change, remove and add items. It processes the differences in order. When it reaches a
// difference, all earlier items already equal those of the second list. Therefore it uses the indices of the second
// list.
func (d *differ) list(at pointer, have, want []any) {
	for _, run := range align(have, want) {
		if run.fromEnd-run.from == run.toEnd-run.to {
			for i := range run.fromEnd - run.from {
				if old, item := have[run.from+i], want[run.to+i]; !Equal(old, item) {
					d.value(at.item(run.to+i), old, item, "replace")
				}
			}
			continue
		}
		for range run.fromEnd - run.from {
			d.emit("remove", at.item(run.to), nil)
		}
		for i := run.to; i < run.toEnd; i++ {
			d.emit("add", at.item(i), want[i])
		}
	}
}

// encodeOperations encodes a JSON patch for the given version of an object. The first operation sets the
// resourceVersion. If another version is stored, the API server then returns a conflict. With a "test" operation, it
// would return a validation error.
func encodeOperations(ops []operation, resourceVersion string) ([]byte, error) {
	lock := operation{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion}
	data, err := json.Marshal(append([]operation{lock}, ops...))
	if err != nil {
		return nil, errors.New("encode patch: the body cannot be expressed in JSON")
	}
	return data, nil
}
