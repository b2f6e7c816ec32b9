// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

// attempt sends the remaining content, in at most two calls.
func (a *applier) attempt(ctx context.Context) error {
	todo, err := a.newPlan(ctx)
	if err != nil || a.result.Gone || !todo.main && !todo.status {
		return err
	}
	carry := todo.status && a.endpoint != StatusEndpointSubresource
	if todo.main || carry && a.endpoint == StatusEndpointMain {
		if done, err := a.sendMain(ctx, todo, carry); done || err != nil {
			return err
		}
	}
	if !todo.status {
		return nil
	}
	return a.sendStatus(ctx, todo)
}

// sendMain writes the main resource. If `carry` is true, the write includes the status. sendMain returns true if
// nothing else has to be sent.
func (a *applier) sendMain(ctx context.Context, todo plan, carry bool) (bool, error) {
	before := a.body
	if err := a.send(ctx, "", todo, carry); err != nil || a.result.Gone {
		return true, err
	}
	applied := carry && a.isStatusStored(before)
	if applied || !todo.status || a.options.Endpoint == StatusEndpointMain {
		if applied {
			kindCache.Add(a.target.kind, StatusEndpointMain)
		}
		a.warn(todo, true, todo.status)
		a.left = Content{}
		return true, nil
	}
	a.warn(todo, true, false)
	a.left = a.left.filterStatus()
	return false, nil
}

// sendStatus writes the status subresource.
func (a *applier) sendStatus(ctx context.Context, todo plan) error {
	err := a.send(ctx, fieldStatus, todo, true)
	switch {
	case notfound.IsProof(err) && a.options.Endpoint == StatusEndpointSubresource:
		a.result.Gone = true
		return nil
	case apierrors.IsNotFound(err) && a.options.Endpoint != StatusEndpointSubresource:
		// Either the object or the subresource does not exist. A write to the main resource shows which.
		a.options.Endpoint, a.endpoint = StatusEndpointMain, StatusEndpointMain
		return a.attempt(ctx)
	case err != nil:
		return err
	}
	kindCache.Add(a.target.kind, StatusEndpointSubresource)
	a.warn(todo, false, true)
	a.left = Content{}
	return nil
}

// send makes one call and stores the response as a raw body. A value of a Go type would not show which fields are
// absent. If the main resource is not found, send sets Gone. If the status subresource is not found, send returns the
// error, because the kind may not have this subresource.
func (a *applier) send(ctx context.Context, subresource string, todo plan, status bool) error {
	w, err := a.encode(todo, subresource, status)
	if err != nil {
		return err
	}
	answer := a.target.raw()
	err = a.target.send(ctx, w, answer, &a.result)
	if subresource == "" && notfound.IsProof(err) {
		a.result.Gone = true
		return nil
	}
	if err != nil {
		return err
	}
	before := &unstructured.Unstructured{Object: a.body}
	a.setRaw(answer)
	a.result.Gone = len(before.GetFinalizers()) > 0 && isReleased(answer) && !isGraceful(answer)
	return nil
}

// isStatusStored reports whether a write to the main resource has stored the status. If so, the kind has no status
// subresource.
func (a *applier) isStatusStored(before map[string]any) bool {
	if len(a.left.Funcs) == 0 {
		return jsondiff.Equal(a.body[fieldStatus], jsondiff.ApplyMergePatch(a.body, a.left.Changes)[fieldStatus])
	}
	return !jsondiff.Equal(before[fieldStatus], a.body[fieldStatus])
}

// warn records a warning for each field that was sent but is not in the response.
func (a *applier) warn(todo plan, main, status bool) {
	for _, path := range listMissing(nil, filterPart(todo.base, main, status), filterPart(todo.wanted, main, status), a.body) {
		if !isWriteOnly(a.target.kind, path) {
			a.result.Warnings = append(a.result.Warnings, path+" was not stored: the API server removed it, probably because the schema of the kind does not contain the field")
		}
	}
}
