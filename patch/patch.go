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

// Func changes the raw body of an object in place. The body is a deep copy of the latest known version, as it is
// stored: objects are map[string]any, lists []any, numbers int64 or float64. The function may add any value that can be
// expressed in JSON. A nil value is stored as an explicit null.
//
// After a conflict it is called again with a newer body, so it must be idempotent; see landscapertest.Idempotent. If it
// returns an error, Apply sends nothing more and returns the error.
type Func = patching.Func

// Typed returns a Func that calls fn with the body converted to a Go type, usually that of the object:
//
//	p.Append(patch.Typed(func(cm *corev1.ConfigMap) error { … }))
//
// Only what fn changes is changed. Fields that the type does not declare are kept, including those in the items of
// lists. An item is identified by its key (the patchMergeKey of the list in the Go type, otherwise "name"). An item
// without a key is identified by equality, by common content, or by its position. An item with another key is another
// item.
//
// Setting a field to a value that its tag omits (omitempty) removes it. An object that did not exist before is stored
// as Go encodes it.
//
// The Func returns the errors of fn, and an error if the body does not fit the type or the result cannot be expressed
// in JSON.
func Typed[T any](fn func(*T) error) Func { return patching.Typed(fn) }

// Patch collects changes of one object: merge changes (see View) and functions. The zero value is an empty patch that
// is ready to use. A Patch is safe for concurrent use. Functions run on the goroutine that calls Apply, Fold or
// Preview, without holding the lock of the patch. Do not copy a Patch after first use.
type Patch struct {
	mu      sync.Mutex
	changes map[string]any
	places  map[string][]string // by path: where views recorded changes
	faults  map[string]fault    // by path: values that JSON cannot express
	fns     []Func
}

// fault is a value that JSON cannot express.
type fault struct {
	path []string
	err  error
}

// Append adds functions after the existing ones. It ignores nil functions.
func (p *Patch) Append(fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns = append(p.fns, given(fns)...)
}

// Insert adds functions before the function with the given index. An index beyond either end means that end. It ignores
// nil functions.
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

// Empty reports whether there are neither changes nor functions. A patch that is not empty may still change nothing.
func (p *Patch) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.fns) == 0 && len(p.faults) == 0
}

// Clear removes all changes and all functions.
func (p *Patch) Clear() { p.Take() }

// Take moves all changes and functions of p to a new patch and leaves p empty. It is for code that sends a running
// patch: changes that are added during the write stay in p for the next write.
func (p *Patch) Take() *Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &Patch{changes: p.changes, places: p.places, faults: p.faults, fns: p.fns}
	p.changes, p.places, p.faults, p.fns = nil, nil, nil, nil
	return taken
}

// Fold returns the body as it would be after the patch. It applies the merge changes first and then the functions, each
// to the result of the previous one. It does not change body and sends nothing.
//
// It returns the error of a function, or a *FieldError for a value that JSON cannot express or a path that leads
// through a list.
func (p *Patch) Fold(body map[string]any) (map[string]any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.Fold(body)
}

// Preview is Fold for typed or unstructured objects: it returns a changed copy of obj with the same Go type. Functions
// see only what obj contains.
//
// It returns the errors of Fold, an error if the result does not fit the type, and a *FieldError for a field that the
// type does not have.
func (p *Patch) Preview(obj client.Object) (client.Object, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.Preview(obj)
}

// Apply sends the patch with as few calls as possible: none if nothing would change, one if only the main resource or
// only the status changes, and otherwise one for each, the main resource first. A kind without a status subresource
// needs only one call.
//
// obj is the last known version of the object, typed or unstructured. Afterwards it has the content that the API server
// returned. If the patch has only merge changes, obj may consist of kind, namespace and name; the patch is then sent
// without a check for changes.
//
// A patch with only merge changes is sent as a JSON merge patch of the object with the UID of obj (see Locked). A patch
// with functions is sent as one JSON patch of the version that the functions saw. After a conflict Apply reads the
// object and runs the functions again with what is left to do, a limited number of times (see Attempts). Apply does not
// change p. Functions on a typed object need a read first, because Go types do not contain everything that is stored.
//
// An object that no longer exists is not an error; see Result.Gone. Errors wrap the error of the API server, so that
// apierrors.IsConflict, IsInvalid and similar functions work. A *SizeError reports that the object is too large, a
// *RightsError that neither a patch nor an update is allowed, and a *FieldError a change that cannot be made. Errors of
// functions are returned as well. The errors of this package never contain content of the object, but those of the API
// server may.
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

// content returns a copy of the content, so that the patch may continue to change.
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

// dropFaults removes the errors of values at the path, below it and above it. The caller holds the lock.
func (p *Patch) dropFaults(path []string) {
	maps.DeleteFunc(p.faults, func(_ string, f fault) bool {
		shared := min(len(f.path), len(path))
		return slices.Equal(f.path[:shared], path[:shared])
	})
}

// plain returns the plain JSON value of what is set at the path, and records an error if JSON cannot express it. The
// caller holds the lock.
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
