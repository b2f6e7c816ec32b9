// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// plan describes the writes of one attempt.
type plan struct {
	base, wanted map[string]any
	main, status bool // whether the main resource changes, and whether the status changes
}

// newPlan computes the writes that apply the remaining content to the latest known version. If the content has
// functions, which need a raw body, and only a Go object is known, newPlan reads the raw body first.
func (a *applier) newPlan(ctx context.Context) (plan, error) {
	if a.typed != nil && len(a.left.Funcs) > 0 {
		return a.newRawPlan(ctx)
	}
	if getVersion(a.body) == "" {
		return a.newBlindPlan(), nil
	}
	wanted, err := a.left.applyToBody(a.body)
	if err != nil {
		return plan{}, err
	}
	if err := checkIdentity(a.body, wanted); err != nil {
		return plan{}, err
	}
	todo := plan{base: a.body, wanted: wanted, main: !equalPart(a.body, wanted, false), status: !equalPart(a.body, wanted, true)}
	if a.typed == nil {
		return todo, nil
	}
	main, readMain := checkUnproven(a.typed, filterPart(a.left.Changes, true, false), a.body)
	status, readStatus := checkUnproven(a.typed, filterPart(a.left.Changes, false, true), a.body)
	if readMain || readStatus {
		return a.newRawPlan(ctx)
	}
	todo.main, todo.status = todo.main || main, todo.status || status
	return todo, nil
}

// newRawPlan is like plan, but first reads the object, because a Go object does not show all stored fields.
func (a *applier) newRawPlan(ctx context.Context) (plan, error) {
	seen := a.obj.GetResourceVersion()
	if err := a.read(ctx); err != nil || a.result.Gone {
		return plan{}, err
	}
	if a.options.Locked && getVersion(a.body) != seen {
		return plan{}, a.newConflict()
	}
	return a.newPlan(ctx)
}

// newBlindPlan returns a plan that sends all changes. It is used if only the name of the object is known.
func (a *applier) newBlindPlan() plan {
	changes := a.left.Changes
	return plan{
		base: a.body, wanted: jsondiff.ApplyMergePatch(a.body, changes),
		main: len(filterPart(changes, true, false)) > 0, status: hasMember(changes, fieldStatus),
	}
}

// checkIdentity returns an error if the resourceVersion, or a field that identifies the object, would change.
func checkIdentity(base, wanted map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if !jsondiff.Equal(base[key], wanted[key]) && base[key] != nil {
			return &jsondiff.FieldError{Path: key, Reason: "a patch must not change the kind of its object"}
		}
	}
	for _, key := range []string{fieldResourceVersion, "name", "namespace", fieldUID} {
		if !jsondiff.Equal(jsondiff.ObjectAt(base, fieldMetadata)[key], jsondiff.ObjectAt(wanted, fieldMetadata)[key]) {
			return &jsondiff.FieldError{Path: jsondiff.PathOf(fieldMetadata, key), Reason: "a patch must not change it, because it identifies the object"}
		}
	}
	return nil
}

// encode returns the write to the main resource, with or without the status, or the write to the status subresource.
func (a *applier) encode(todo plan, subresource string, status bool) (write, error) {
	main := subresource == ""
	if len(a.left.Funcs) == 0 {
		return a.encodeMerge(todo, subresource, status)
	}
	w := write{subresource: subresource, contentType: types.JSONPatchType, version: getVersion(a.body)}
	w.change = func(map[string]any) map[string]any { return todo.wanted } // the stored object has the version of todo.base
	var err error
	w.data, err = encodeOperations(jsondiff.NewOperations(filterPart(todo.base, main, status), filterPart(todo.wanted, main, status)), w.version)
	return w, err
}

// encodeMerge encodes the recorded changes as a merge patch. If the UID or the resourceVersion is known, the patch
// contains one of them, so that it cannot change a new object with the same name.
func (a *applier) encodeMerge(todo plan, subresource string, status bool) (write, error) {
	w := write{subresource: subresource, contentType: types.MergePatchType}
	changes := filterPart(a.left.Changes, subresource == "", status)
	version, stripped := getVersion(a.body), false
	if getVersion(todo.base) != "" {
		metadata := changes[fieldMetadata] // metadata has no empty members in the API server, so deletions are harmless
		delete(changes, fieldMetadata)
		changes, stripped = jsondiff.DropUselessDeletions(changes, todo.base)
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
	w.change = func(stored map[string]any) map[string]any { return jsondiff.ApplyMergePatch(stored, changes) }
	var err error
	if w.data, err = json.Marshal(changes); err != nil {
		return w, errors.New("encode patch: the changes cannot be expressed in JSON")
	}
	return w, nil
}

// bind returns a copy of a merge patch that also sets one member of the metadata.
func bind(change map[string]any, key, value string) map[string]any {
	metadata := jsondiff.MergeOverlay(map[string]any{key: value}, jsondiff.ObjectAt(change, fieldMetadata))
	return jsondiff.MergeOverlay(change, map[string]any{fieldMetadata: metadata})
}

// encodeOperations encodes a JSON patch for the given version of an object. The first operation sets the
// resourceVersion. If another version is stored, the API server then returns a conflict. With a "test" operation, it
// would return a validation error.
func encodeOperations(ops []jsondiff.Operation, resourceVersion string) ([]byte, error) {
	lock := jsondiff.Operation{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion}
	data, err := json.Marshal(append([]jsondiff.Operation{lock}, ops...))
	if err != nil {
		return nil, errors.New("encode patch: the body cannot be expressed in JSON")
	}
	return data, nil
}
