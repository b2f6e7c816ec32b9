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

// The API server accepts 10 000 operations in a JSON patch. An object or a list that needs more than manyOperations is
// replaced.
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

// differ collects operations.
type differ struct {
	ops  []operation
	size int // estimated, as text
	many int // an object or a list that needs more operations is replaced
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

// object appends operations for members. "add" sets a member whether or not it exists.
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

// value appends the operations from have to want. If it is shorter, it sets the whole value with op.
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

// list changes, removes and adds items. Items before index are already processed, so the index of a run in the list at
// that step is its index in want.
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

// encodeOperations puts the lock first, so that a stale version is a conflict. A "test" operation would make the patch
// invalid instead.
func encodeOperations(ops []operation, resourceVersion string) ([]byte, error) {
	lock := operation{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion}
	data, err := json.Marshal(append([]operation{lock}, ops...))
	if err != nil {
		return nil, errors.New("encode patch: the body cannot be expressed in JSON")
	}
	return data, nil
}
