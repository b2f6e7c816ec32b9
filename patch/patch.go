// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// Func changes the raw body of an object in place. The body is a deep copy of the freshest one that was seen, as it is stored: objects
// are map[string]any, lists []any, numbers int64 or float64. What the function puts in may be anything that can be expressed in JSON.
// A nil value is stored as an explicit null.
//
// It is called again after a conflict, on a newer body, so it must look before it changes: see landscapertest.Idempotent. An error
// ends Apply before anything more is sent.
type Func = patching.Func

// Typed makes a Func out of a function on a Go type, usually that of the object:
//
//	p.Append(patch.Typed(func(cm *corev1.ConfigMap) error { … }))
//
// Only what fn changes is changed. What the type does not declare stays as it is, also in the items of lists: an item is recognised by
// its key (the patchMergeKey of the list in the Go type, otherwise "name"), an item that had no key by being equal, by what it has in
// common, or by its position. An item with another key is another item.
//
// Setting a field to a value that its tag leaves out (omitempty) removes it. An object that did not exist is stored as Go shows it.
//
// The Func returns the errors of fn, and an error if the body does not fit the type or the result cannot be expressed in JSON.
func Typed[T any](fn func(*T) error) Func { return patching.Typed(fn) }

// Patch collects changes of one object: merge changes (see View) and functions. The zero value is an empty patch, ready to be used. It
// is safe for concurrent use. Functions run outside of its lock, on the goroutine that calls Apply, Fold or Preview. Do not copy a
// Patch after first use.
type Patch struct {
	mu      sync.Mutex
	changes map[string]any
	places  map[string][]string // by path: where views noted changes
	faults  map[string]fault    // by path: values that JSON cannot express
	fns     []Func
}

// fault is a value that JSON cannot express.
type fault struct {
	path []string
	err  error
}

// Append adds functions behind those that are there. nil functions are left out.
func (p *Patch) Append(fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns = append(p.fns, given(fns)...)
}

// Insert adds functions in front of the function with that index: 0 is the front. An index beyond either end means that end. nil
// functions are left out.
func (p *Patch) Insert(index int, fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	index = min(max(index, 0), len(p.fns))
	p.fns = slices.Insert(p.fns, index, given(fns)...)
}

func given(fns []Func) []Func {
	return slices.DeleteFunc(slices.Clone(fns), func(f Func) bool { return f == nil })
}

// Functions returns the number of functions.
func (p *Patch) Functions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fns)
}

// Empty reports whether there are neither changes nor functions. A patch that is not empty may still turn out to change nothing.
func (p *Patch) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.fns) == 0 && len(p.faults) == 0
}

// Clear removes all changes and all functions.
func (p *Patch) Clear() { p.Take() }

// Take moves everything that p holds into a new patch and leaves p empty. It is for senders of a running patch: what is noted while
// they send stays in p, for the next time.
func (p *Patch) Take() *Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &Patch{changes: p.changes, places: p.places, faults: p.faults, fns: p.fns}
	p.changes, p.places, p.faults, p.fns = nil, nil, nil, nil
	return taken
}

// Fold returns the body as it would be after the patch: first the merge changes, then the functions, each on the result of the one
// before. body is not changed and nothing is sent.
//
// It returns the error of a function, and a *FieldError for a value that JSON cannot express or a path that leads through a list.
func (p *Patch) Fold(body map[string]any) (map[string]any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.Fold(body)
}

// Preview is Fold for objects, typed or unstructured: it returns a changed copy of obj, of the same Go type. Functions see only what
// obj shows.
//
// It returns the errors of Fold, an error if the result does not fit the type, and a *FieldError for a field that the type does not
// have.
func (p *Patch) Preview(obj client.Object) (client.Object, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.Preview(obj)
}

// Apply sends the patch in the fewest calls: none when nothing would change, one when the change is in the main resource or in the
// status, otherwise one for each, the main resource first. A kind without a status subresource takes both in one.
//
// obj is the object as it was seen last, typed or unstructured. Afterwards it is what the API server returned. For merge changes alone
// it may also be just kind, namespace and name: then they are sent without looking whether they change anything.
//
// Merge changes alone are a JSON merge patch of the object with the UID of obj (see Locked). With functions everything is one JSON
// patch of the version that they saw: after a conflict the object is read and the functions run again, a bounded number of times (see
// Attempts), with what is left only. The patch itself stays as it is. Functions on a typed object cost one read first, since Go types
// do not show all that is stored.
//
// An object that is gone is no error: see Result.Gone. Errors wrap the answer of the API server, so apierrors.IsConflict, IsInvalid
// and so on work. A *SizeError reports that the object is too large, a *RightsError that it may not be written at all, a *FieldError a
// change that cannot be made. Errors of functions are returned as well. The errors of this package never contain content of the
// object. Those of the API server may.
func (p *Patch) Apply(ctx context.Context, c client.Client, obj client.Object, opts ...Option) (Result, error) {
	content, err := p.content()
	if err != nil {
		return Result{Left: p}, err
	}
	options := patching.Options{}
	for _, opt := range opts {
		if opt != nil {
			opt(&options)
		}
	}
	done, err := patching.Apply(ctx, c, obj, content, options)
	result := Result{
		Calls: done.Calls, Attempts: done.Attempts, Reads: done.Reads, Body: done.Body, Gone: done.Gone, Warnings: done.Warnings,
	}
	if !done.Left.Empty() {
		result.Left = fromContent(done.Left)
	}
	return result, err
}

// content takes a copy, so that the patch may go on changing.
func (p *Patch) content() (patching.Content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := make([]error, 0, len(p.faults))
	for _, path := range slices.Sorted(maps.Keys(p.faults)) {
		errs = append(errs, p.faults[path].err)
	}
	out := patching.Content{Changes: patching.Clone(p.changes), Funcs: slices.Clone(p.fns)}
	for _, path := range slices.Sorted(maps.Keys(p.places)) {
		if place := p.places[path]; (View{patch: p, path: place}).find() != nil {
			out.Places = append(out.Places, place)
		}
	}
	return out, errors.Join(errs...)
}

func fromContent(content patching.Content) *Patch {
	p := &Patch{changes: content.Changes, fns: content.Funcs, places: map[string][]string{}}
	for _, place := range content.Places {
		p.places[patching.PathOf(place...)] = place
	}
	return p
}

// dropFaults forgets the errors of values at the path, below it and above it. The lock is held.
func (p *Patch) dropFaults(path []string) {
	maps.DeleteFunc(p.faults, func(_ string, f fault) bool {
		shared := min(len(f.path), len(path))
		return slices.Equal(f.path[:shared], path[:shared])
	})
}

// plain returns the plain JSON value of what is set at the path, and notes what JSON cannot express. The lock is held.
func (p *Patch) plain(path []string, value any) (any, bool) {
	if members, isObject := value.(map[string]any); isObject && members != nil {
		out := make(map[string]any, len(members))
		for key, inner := range members {
			if plain, ok := p.plain(append(slices.Clone(path), key), inner); ok {
				out[key] = plain
			}
		}
		return out, true
	}
	plain, err := patching.Normal(value)
	if err != nil {
		if p.faults == nil {
			p.faults = map[string]fault{}
		}
		p.faults[patching.PathOf(path...)] = fault{path: path, err: patching.Below(patching.PathOf(path...), err)}
		return nil, false
	}
	patching.DropListNulls(plain)
	return plain, true
}
