// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Func changes the raw body of an object in place. The body is a deep copy of the freshest one that was
// seen: objects are map[string]any, lists []any, numbers int64 or float64; what the function puts in may
// be anything that can be expressed in JSON. A nil value is stored as an explicit null.
// It is called again after a conflict, on a newer body, so it must look before it changes: see
// landscapertest.Idempotent. An error ends Apply before anything more is sent.
type Func func(body map[string]any) error

// Patch collects what shall become of one object: merge changes (see View) and functions. The zero value
// is an empty patch, ready to be used. It is safe for concurrent use; functions run outside of its lock,
// on the goroutine that calls Apply, Fold or Preview. Do not copy it after first use.
type Patch struct {
	mu      sync.Mutex
	changes map[string]any
	fns     []Func
	faults  map[string]error // by path: values of Set that JSON cannot express
}

// Append adds functions behind those that are there. nil functions are left out.
func (p *Patch) Append(fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns = append(p.fns, given(fns)...)
}

// Insert adds functions in front of the function with that index: 0 is the front. An index beyond either
// end means that end. nil functions are left out.
func (p *Patch) Insert(index int, fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	index = min(max(index, 0), len(p.fns))
	p.fns = slices.Insert(p.fns, index, given(fns)...)
}

func given(fns []Func) []Func {
	return slices.DeleteFunc(slices.Clone(fns), func(f Func) bool { return f == nil })
}

// Functions tells how many functions there are.
func (p *Patch) Functions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fns)
}

// Empty tells that there are neither changes nor functions. A patch that is not empty may still turn out
// to change nothing.
func (p *Patch) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.fns) == 0 && len(p.faults) == 0
}

// Clear takes back all changes and all functions.
func (p *Patch) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes, p.fns, p.faults = nil, nil, nil
}

// Take moves everything that p holds into a new patch and leaves p empty. It is for senders of a running
// patch: what is noted while they send stays in p, for the next time.
func (p *Patch) Take() *Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &Patch{changes: p.changes, fns: p.fns, faults: p.faults}
	p.changes, p.fns, p.faults = nil, nil, nil
	return taken
}

// Fold returns the body as it would be after the patch: first the merge changes, then the functions, each
// on the result of the one before. body is not changed and nothing is sent.
// Errors: a function's, a value that JSON cannot express.
func (p *Patch) Fold(body map[string]any) (map[string]any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	start, err := normal(body)
	if err != nil {
		return nil, err
	}
	return content.fold(start)
}

// Preview is Fold for objects, typed or unstructured: it returns a changed copy of obj, of the same Go
// type. What a Go type does not know is not in its body, for the functions neither.
// Errors: as from Fold, a result that does not fit the type, and a *FieldError for a field that the type does
// not have.
func (p *Patch) Preview(obj client.Object) (client.Object, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	body, _, err := seenBody(obj)
	if err != nil {
		return nil, err
	}
	wanted, err := content.fold(body)
	if err != nil {
		return nil, err
	}
	out, err := newLike(obj)
	if err != nil {
		return nil, err
	}
	if err := checkKnown(obj, wanted); err != nil {
		return nil, err
	}
	return out, setBody(out, wanted)
}

// content is what a patch held at one moment.
type content struct {
	changes map[string]any
	fns     []Func
}

// content takes a copy, so that the patch may go on changing.
func (p *Patch) content() (content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := make([]error, 0, len(p.faults))
	for _, path := range slices.Sorted(maps.Keys(p.faults)) {
		faults = append(faults, p.faults[path])
	}
	changes, _ := cloneValue(p.changes).(map[string]any)
	return content{changes: changes, fns: slices.Clone(p.fns)}, errors.Join(faults...)
}

// fold applies everything to a normalised body.
func (c content) fold(body map[string]any) (map[string]any, error) {
	out := applyMerge(body, c.changes)
	for i, fn := range c.fns {
		work, _ := cloneValue(out).(map[string]any)
		if err := fn(work); err != nil {
			return nil, fmt.Errorf("patch function %d: %w", i, err)
		}
		var err error
		if out, err = normal(work); err != nil {
			return nil, fmt.Errorf("patch function %d: %w", i, err)
		}
	}
	return out, nil
}

func (c content) empty() bool { return len(c.changes) == 0 && len(c.fns) == 0 }

// statusOnly is what is left once everything but the status was applied.
func (c content) statusOnly() content {
	left := content{fns: make([]Func, 0, len(c.fns))}
	if status, exists := c.changes[fieldStatus]; exists {
		left.changes = map[string]any{fieldStatus: status}
	}
	for _, fn := range c.fns {
		left.fns = append(left.fns, onStatus(fn))
	}
	return left
}

// onStatus runs the function and keeps only what it did to the status.
func onStatus(fn Func) Func {
	return func(body map[string]any) error {
		work, _ := cloneValue(body).(map[string]any)
		if err := fn(work); err != nil {
			return err
		}
		if status, exists := work[fieldStatus]; exists {
			body[fieldStatus] = status
		} else {
			delete(body, fieldStatus)
		}
		return nil
	}
}

// asPatch turns what is left into a patch of its own; nil if nothing is.
func (c content) asPatch() *Patch {
	if c.empty() {
		return nil
	}
	return &Patch{changes: c.changes, fns: c.fns}
}

// isNil tells that there is no object behind the interface.
func isNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
