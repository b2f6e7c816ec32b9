// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plan is what one attempt wants to send.
type plan struct {
	base, wanted map[string]any
	main, status bool // where something is to be changed
	// locked: the patches carry the resourceVersion.
	locked bool
	// typed: as in differ.
	typed bool
}

func (p plan) empty() bool { return !p.main && !p.status }

// plan folds what is left into the freshest body. When that body cannot tell enough it reads a raw one.
func (r *applying) plan(ctx context.Context) (plan, error) {
	todo, doubt, err := r.compare()
	if err != nil || !doubt {
		return todo, err
	}
	if err := r.read(ctx); err != nil || r.result.Gone {
		return plan{}, err
	}
	todo, _, err = r.compare()
	return todo, err
}

func (r *applying) compare() (plan, bool, error) {
	if versionOf(r.body) == "" {
		return r.blind(), false, nil
	}
	wanted, err := r.left.fold(r.body)
	if err != nil {
		return plan{}, false, err
	}
	if err := checkIdentity(r.body, wanted); err != nil {
		return plan{}, false, err
	}
	todo := plan{base: r.body, wanted: wanted, locked: r.locked || len(r.left.fns) > 0, typed: r.typed}
	todo.status = !equal(r.body[fieldStatus], wanted[fieldStatus]) || hasMember(r.body, fieldStatus) != hasMember(wanted, fieldStatus)
	todo.main = !equal(withoutStatus(r.body), withoutStatus(wanted))
	if status := object(wanted, fieldStatus); todo.status && r.isDeployItem() && len(status) > 0 {
		stored := object(r.body, fieldStatus)
		wanted[fieldStatus] = completeStatus(stored, status)
		// What is filled in must not overwrite what others have stored by now.
		todo.locked = todo.locked || isZeroStatus(withWholeDeployer(stored)) || isNewDeployer(stored, status) || !equal(status, wanted[fieldStatus])
	}
	if len(r.left.fns) == 0 || !r.typed || todo.empty() {
		return todo, false, nil
	}
	d := differ{typed: true}
	d.object("", r.body, wanted)
	return todo, d.doubt, nil
}

// blind sends everything: nothing is known about the object but its name.
func (r *applying) blind() plan {
	_, status := r.left.changes[fieldStatus]
	return plan{
		base: r.body, wanted: applyMerge(r.body, r.left.changes),
		main: len(withoutStatus(r.left.changes)) > 0, status: status,
	}
}

// checkIdentity refuses what would make another object of it, and what is the lock's.
func checkIdentity(base, wanted map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if !equal(base[key], wanted[key]) && base[key] != nil {
			return &FieldError{Path: key, Reason: "a patch keeps the kind of its object"}
		}
	}
	have, want := object(base, fieldMetadata), object(wanted, fieldMetadata)
	for _, key := range append([]string{fieldResourceVersion}, identity...) {
		if !equal(have[key], want[key]) {
			return &FieldError{Path: pathOf(fieldMetadata, key), Reason: "it says which object it is"}
		}
	}
	return nil
}

func (r *applying) isDeployItem() bool {
	return r.gvk.Group == lsv1alpha1.SchemeGroupVersion.Group && r.gvk.Kind == "DeployItem"
}

// completeStatus returns the wanted status of a DeployItem with what the schema demands: see the package
// comment.
func completeStatus(base, wanted map[string]any) map[string]any {
	out := maps.Clone(wanted)
	if !equal(base[fieldDeployer], wanted[fieldDeployer]) {
		delete(out, fieldDeployer)
		if whole, exists := withWholeDeployer(wanted)[fieldDeployer]; exists {
			out[fieldDeployer] = whole
		}
	}
	if !hasMember(out, fieldObservedGeneration) {
		out[fieldObservedGeneration] = int64(0)
	}
	return out
}

// isNewDeployer tells that there may be no stored deployer yet: a Go object shows an empty one then.
func isNewDeployer(base, wanted map[string]any) bool {
	return hasMember(withWholeDeployer(wanted), fieldDeployer) && !hasMember(withWholeDeployer(base), fieldDeployer)
}

// encode writes one patch, for the main resource, the status, or both.
func (r *applying) encode(todo plan, main, status bool) (client.Patch, error) {
	if len(r.left.fns) == 0 {
		return r.encodeMerge(todo, main, status)
	}
	d := differ{typed: todo.typed}
	d.object("", part(todo.base, main, status), part(todo.wanted, main, status))
	data, err := encodeOperations(d.ops, versionOf(r.body))
	return client.RawPatch(types.JSONPatchType, data), err
}

func (r *applying) encodeMerge(todo plan, main, status bool) (client.Patch, error) {
	out := part(r.left.changes, main, status)
	if versionOf(todo.base) != "" {
		out = effective(out, todo.base)
	}
	if changes := maps.Clone(object(out, fieldStatus)); changes != nil && r.isDeployItem() && todo.locked {
		wanted := object(todo.wanted, fieldStatus)
		changes[fieldObservedGeneration] = wanted[fieldObservedGeneration]
		if hasMember(changes, fieldDeployer) {
			changes[fieldDeployer] = wanted[fieldDeployer]
		}
		out[fieldStatus] = changes
	}
	if todo.locked {
		metadata := maps.Clone(object(out, fieldMetadata))
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata[fieldResourceVersion] = versionOf(r.body)
		out[fieldMetadata] = metadata
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode patch: the changes cannot be expressed in JSON")
	}
	return client.RawPatch(types.MergePatchType, data), nil
}
