// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// plan is what one attempt has to send.
type plan struct {
	base, wanted map[string]any
	main, status bool // whether the main resource and the status change
}

// plan applies what is left to the latest version. Functions need a raw body.
func (a *applier) plan(ctx context.Context) (plan, error) {
	if a.typed != nil && len(a.left.Funcs) > 0 {
		return a.planRaw(ctx)
	}
	if versionOf(a.body) == "" {
		return a.blind(), nil
	}
	wanted, err := a.left.fold(a.body)
	if err != nil {
		return plan{}, err
	}
	if err := checkIdentity(a.body, wanted); err != nil {
		return plan{}, err
	}
	todo := plan{base: a.body, wanted: wanted, main: !samePart(a.body, wanted, false), status: !samePart(a.body, wanted, true)}
	if a.typed == nil {
		return todo, nil
	}
	main, readMain := unproven(a.typed, part(a.left.Changes, true, false), a.body)
	status, readStatus := unproven(a.typed, part(a.left.Changes, false, true), a.body)
	if readMain || readStatus {
		return a.planRaw(ctx)
	}
	todo.main, todo.status = todo.main || main, todo.status || status
	return todo, nil
}

// planRaw reads the object first, because its Go type does not show everything that is stored.
func (a *applier) planRaw(ctx context.Context) (plan, error) {
	seen := a.obj.GetResourceVersion()
	if err := a.read(ctx); err != nil || a.result.Gone {
		return plan{}, err
	}
	if a.options.Locked && versionOf(a.body) != seen {
		return plan{}, a.conflict()
	}
	return a.plan(ctx)
}

// blind returns a plan that sends everything, because only the name of the object is known.
func (a *applier) blind() plan {
	changes := a.left.Changes
	return plan{
		base: a.body, wanted: ApplyMerge(a.body, changes),
		main: len(part(changes, true, false)) > 0, status: hasMember(changes, fieldStatus),
	}
}

// checkIdentity returns an error for changes that would identify another object, and for changes of the lock.
func checkIdentity(base, wanted map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if !Equal(base[key], wanted[key]) && base[key] != nil {
			return &FieldError{Path: key, Reason: "a patch must not change the kind of its object"}
		}
	}
	for _, key := range []string{fieldResourceVersion, "name", "namespace", fieldUID} {
		if !Equal(member(base, fieldMetadata)[key], member(wanted, fieldMetadata)[key]) {
			return &FieldError{Path: PathOf(fieldMetadata, key), Reason: "it identifies the object"}
		}
	}
	return nil
}

// encode returns one write: to the main resource, with or without the status, or to the status subresource.
func (a *applier) encode(todo plan, subresource string, status bool) (write, error) {
	main := subresource == ""
	if len(a.left.Funcs) == 0 {
		return a.encodeMerge(todo, subresource, status)
	}
	w := write{subresource: subresource, contentType: types.JSONPatchType, version: versionOf(a.body)}
	w.change = func(map[string]any) map[string]any { return todo.wanted } // the stored object has that version
	var err error
	w.data, err = encodeOperations(operations(part(todo.base, main, status), part(todo.wanted, main, status)), w.version)
	return w, err
}

// encodeMerge encodes the recorded changes, bound to the object: by its resourceVersion if the UID is not sufficient,
// and by its UID otherwise.
func (a *applier) encodeMerge(todo plan, subresource string, status bool) (write, error) {
	w := write{subresource: subresource, contentType: types.MergePatchType}
	changes := part(a.left.Changes, subresource == "", status)
	version, stripped := versionOf(a.body), false
	if versionOf(todo.base) != "" {
		metadata := changes[fieldMetadata] // an empty member of it is never stored, so a deletion creates nothing
		delete(changes, fieldMetadata)
		changes, stripped = effective(changes, todo.base)
		if metadata != nil {
			changes[fieldMetadata] = metadata
		}
	}
	switch {
	case version != "" && (a.options.Locked || stripped || subresource != ""): // the API server ignores the UID in the status of a custom resource
		changes, w.version = bind(changes, fieldResourceVersion, version), version
	case a.uid != "":
		changes = bind(changes, fieldUID, string(a.uid))
	}
	w.change = func(stored map[string]any) map[string]any { return ApplyMerge(stored, changes) }
	var err error
	if w.data, err = json.Marshal(changes); err != nil {
		return w, errors.New("encode patch: the changes cannot be expressed in JSON")
	}
	return w, nil
}

// bind returns a merge patch with one more member in its metadata.
func bind(change map[string]any, key, value string) map[string]any {
	out, metadata := map[string]any{}, map[string]any{key: value}
	maps.Copy(out, change)
	maps.Copy(metadata, member(change, fieldMetadata))
	out[fieldMetadata] = metadata
	return out
}
