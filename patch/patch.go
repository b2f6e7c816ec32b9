// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/patching"
)

// Func changes the raw body of an object in place. The body is a deep copy of the latest known version, as the API
// server stores it. In the body, objects are of type map[string]any, lists of type []any, and numbers of type int64 or
// float64. The function may add any value that can be expressed in JSON. A nil value is stored as an explicit null.
//
// After a conflict, the function is called again with a newer body, so the function must be idempotent; see
// landscapertest.VerifyIdempotent. If the function returns an error, Apply sends nothing more and returns the error.
type Func = patching.Func

// Typed returns a Func that calls fn with the body converted to a Go type, usually the type of the object:
//
//	p.Append(patch.Typed(func(cm *corev1.ConfigMap) error { … }))
//
// Only the fields that fn changes are changed in the body. Fields that the type does not declare are kept, also in the
// items of lists. Typed matches the items of a list before and after the call by their keys. The key is the field in
// the struct tag patchMergeKey of the list, or the field "name" if there is no such tag. If fn changes the key of an
// item, the item counts as new. Items without a key are matched by equality, by common content, or by position.
//
// If fn sets a field with the tag omitempty to an empty value, the field is removed. A nested object that did not exist
// before is stored as encoding/json encodes it.
//
// The Func returns the error of fn. It also returns an error if the body does not fit the type or if the result cannot
// be expressed in JSON.
func Typed[T any](fn func(*T) error) Func { return patching.Typed(fn) }

// Patch collects changes of one object: merge changes (see View) and functions. The zero value is an empty patch that
// is ready to use. A Patch is safe for concurrent use. Functions run on the goroutine that calls Apply, ApplyTo or
// ApplyToCopy, without holding the lock of the patch. Do not copy a Patch after first use.
type Patch struct {
	mu      sync.Mutex
	changes map[string]any
	places  map[string][]string // the paths at which views recorded changes; the key is the path as text
	faults  map[string]fault    // values that JSON cannot express; the key is the path as text
	fns     []Func
}

// fault is a value that JSON cannot express.
type fault struct {
	path []string
	err  error
}

// Append adds functions after the existing functions. It ignores nil functions.
func (p *Patch) Append(fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns = append(p.fns, removeNil(fns)...)
}

// Insert adds functions before the function with the given index. If index is negative, it adds the functions at the
// beginning. If index is too large, it adds the functions at the end. It ignores nil functions.
func (p *Patch) Insert(index int, fns ...Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	index = min(max(index, 0), len(p.fns))
	p.fns = slices.Insert(p.fns, index, removeNil(fns)...)
}

func removeNil(fns []Func) []Func {
	return slices.DeleteFunc(slices.Clone(fns), func(f Func) bool { return f == nil })
}

// NumFuncs returns the number of functions.
func (p *Patch) NumFuncs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fns)
}

// IsEmpty reports whether there are neither changes nor functions. A patch that is not empty may still change nothing.
func (p *Patch) IsEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.fns) == 0 && len(p.faults) == 0
}

// Clear removes all changes and all functions.
func (p *Patch) Clear() { p.MoveToNew() }

// MoveToNew moves all changes and functions of p to a new patch and returns it. Afterwards, p is empty. MoveToNew is
// for code that sends a patch while other goroutines still add changes to it: changes that are added during the write
// remain in p for the next write.
func (p *Patch) MoveToNew() *Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &Patch{changes: p.changes, places: p.places, faults: p.faults, fns: p.fns}
	p.changes, p.places, p.faults, p.fns = nil, nil, nil, nil
	return taken
}

// ApplyTo returns a copy of body to which the patch is applied. It applies the merge changes first, and then each
// function to the result of the previous function. It does not change body and sends nothing.
//
// It returns the error of a function. It returns a *FieldError for a value that JSON cannot express, or for a path that
// leads through a list.
func (p *Patch) ApplyTo(body map[string]any) (map[string]any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.ApplyTo(body)
}

// ApplyToCopy is like ApplyTo, but for a typed or unstructured object. It returns a copy of obj, of the same Go type,
// to which the patch is applied. Functions receive only the fields that obj contains.
//
// It returns the errors of ApplyTo, an error if the result does not fit the type, and a *FieldError for a field that
// the type does not declare.
func (p *Patch) ApplyToCopy(obj client.Object) (client.Object, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	return content.ApplyToCopy(obj)
}

// Apply sends the patch with as few calls as possible. It makes no call if nothing would change, and one call if only
// the main resource or only the status changes. Otherwise it makes two calls, first for the main resource and then for
// the status. A kind without a status subresource needs only one call.
//
// obj is the last known version of the object, typed or unstructured. After each call, Apply stores the response of the
// API server in obj. If the patch contains only merge changes, obj may consist of kind, namespace and name; the patch
// is then sent even if it changes nothing.
//
// A patch with only merge changes is sent as a JSON merge patch that applies only if the object still has the UID of
// obj (see also WithOptimisticLock). A patch with functions is sent as a JSON patch that applies only to the version on
// which the functions ran. After a conflict, Apply reads the object and applies the remaining changes and functions
// again, a limited number of times (see WithMaxAttempts). Apply does not change p. If obj is typed and the patch
// contains functions, Apply reads the object first, because a Go type may not declare all fields that are stored.
//
// An object that no longer exists is not an error; see Result.Gone. Errors wrap the error of the API server, so that
// apierrors.IsConflict, IsInvalid and similar functions work. Apply returns a *SizeError if the object is too large, a
// *RightsError if neither patches nor updates are allowed, and a *FieldError for a change that cannot be made. If a
// function returns an error, Apply returns this error. The errors of this package never contain content of the object,
// but errors of the API server may.
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
	if !done.Left.IsEmpty() {
		result.Left = fromContent(done.Left)
	}
	return result, err
}

// content returns a copy of the content, so that p may be changed while the copy is in use.
func (p *Patch) content() (patching.Content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := make([]error, 0, len(p.faults))
	for _, path := range slices.Sorted(maps.Keys(p.faults)) {
		errs = append(errs, p.faults[path].err)
	}
	out := patching.Content{Changes: jsondiff.DeepCopy(p.changes), Funcs: slices.Clone(p.fns)}
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
		p.places[jsondiff.PathOf(place...)] = place
	}
	return p
}

// dropFaults removes entries from p.faults, which contains the values that JSON cannot express. It removes the entries
// for the field at the given path, for the parents of the field, and for all fields below it. The caller holds the
// lock.
func (p *Patch) dropFaults(path []string) {
	maps.DeleteFunc(p.faults, func(_ string, f fault) bool {
		shared := min(len(f.path), len(path))
		return slices.Equal(f.path[:shared], path[:shared])
	})
}

// toPlain converts a value, which will be set at the given path, into plain JSON values. If JSON cannot express the
// value, toPlain adds an entry to p.faults. The caller holds the lock.
func (p *Patch) toPlain(path []string, value any) (any, bool) {
	if members, isObject := value.(map[string]any); isObject && members != nil {
		out := make(map[string]any, len(members))
		for key, inner := range members {
			if plain, ok := p.toPlain(append(slices.Clone(path), key), inner); ok {
				out[key] = plain
			}
		}
		return out, true
	}
	plain, err := jsondiff.Normalize(value)
	if err != nil {
		if p.faults == nil {
			p.faults = map[string]fault{}
		}
		p.faults[jsondiff.PathOf(path...)] = fault{path: path, err: jsondiff.PrependPath(jsondiff.PathOf(path...), err)}
		return nil, false
	}
	jsondiff.DropListNulls(plain)
	return plain, true
}
