// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON patch (RFC 6902).
type operation map[string]any

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a JSON pointer (RFC 6901), built key by key.
type pointer string

func (p pointer) member(key string) pointer { return p + "/" + pointer(pointerEscapes.Replace(key)) }
func (p pointer) item(index int) pointer    { return p + "/" + pointer(strconv.Itoa(index)) }

// inMetadata tells that all is known: no Go type of an object lacks a key of ObjectMeta.
func (p pointer) inMetadata() bool { return strings.HasPrefix(string(p), "/"+fieldMetadata) }

// differ computes the JSON patch between two bodies.
type differ struct {
	ops []operation
	// typed: the first body was a Go object, which shows zero values where nothing is stored, and not
	// what its type does not know.
	typed bool
	// doubt is set when an operation depends on what a typed body cannot tell.
	doubt bool
}

func (d *differ) emit(op string, at pointer, value any) {
	step := operation{"op": op, "path": string(at)}
	if op != "remove" {
		step["value"] = value
	}
	d.ops = append(d.ops, step)
}

// object uses "add" for members, whether they exist or not: it means to set.
func (d *differ) object(at pointer, have, want map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, keep := want[key]; !keep {
			d.doubt = d.doubt || d.typed && isZero(have[key]) && !at.inMetadata()
			d.emit("remove", at.member(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, exists := have[key]
		if exists && equal(old, want[key]) {
			continue
		}
		d.value(at.member(key), old, want[key], "add")
	}
}

// value makes want out of have; op is how to set the value as a whole.
func (d *differ) value(at pointer, have, want any, op string) {
	switch wanted := want.(type) {
	case map[string]any:
		old, isObject := have.(map[string]any)
		uncertain := op == "add" && d.typed && isZero(have)
		if isObject && !uncertain {
			d.object(at, old, wanted)
			return
		}
		d.doubt = d.doubt || uncertain && !at.inMetadata()
	case []any:
		if old, isList := have.([]any); isList && len(old) > 0 && len(wanted) > 0 {
			d.list(at, old, wanted)
			return
		}
	}
	d.emit(op, at, want)
}

// list changes, removes and adds items. Items before index are done, so the index of a run in the list as
// it is at that step is the one in want.
func (d *differ) list(at pointer, have, want []any) {
	for _, run := range align(have, want) {
		if run.same {
			continue
		}
		if run.fromEnd-run.from == run.toEnd-run.to {
			for i := range run.fromEnd - run.from {
				d.item(at.item(run.to+i), have[run.from+i], want[run.to+i])
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

func (d *differ) item(at pointer, have, want any) {
	if !equal(have, want) {
		d.value(at, have, want, "replace")
	}
}

// encodeOperations puts the lock in front: a stale one is a conflict, where a "test" would be invalid.
func encodeOperations(ops []operation, resourceVersion string) ([]byte, error) {
	lock := operation{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion}
	data, err := json.Marshal(append([]operation{lock}, ops...))
	if err != nil {
		return nil, fmt.Errorf("encode patch: the body cannot be expressed in JSON")
	}
	return data, nil
}
