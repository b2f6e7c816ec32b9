// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// applyObject applies an object with the strategy Apply. If the item wrote the object before, the request requires the
// recorded UID, so that it cannot change a different object.
func applyObject(r *Rules, f Facts) Step {
	if f.Hash == "" || f.UID == "" {
		return claimObject(r, f)
	}
	force := !r.canShare(f.Manifest) || f.Hash == f.Manifest.Hash // a new manifest may set fields of another owner
	return f.apply(r, writeApplying, f.getBody(), f.UID, force)
}

// handleApplying is called after applying an object of the inventory.
func handleApplying(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassOK && r.hasLeftovers(f.Answer):
		f.Live = f.Answer
		return transferFields(r, f)
	case f.class == response.ClassMismatch:
		f.forget()
		return claimObject(r, f)
	case f.class == response.ClassConflict && !f.sent.Force && f.Live != nil:
		return handleDisputed(r, f)
	case f.class == response.ClassConflict && !f.sent.Force:
		return f.read(shareDisputed)
	case f.class == response.ClassImmutable && r.Recreate && r.isWatchedAsOwn(f):
		return replaceObject(r, f, isReplaced)
	case f.class == response.ClassImmutable && r.Recreate, response.IsAmbiguous(f.err):
		return f.readRejected(writeApplying)
	}
	return handleWriting(r, f)
}

// readRejected reads an object because the API server rejected a write in a state.
func (f Facts) readRejected(state State) Step {
	f.fault, f.rejected = f.err, state
	return f.read(writeRejected)
}

// handleRejected is called after the API server rejected a write and the object was read. If the state in which this
// happened allows it, the object is deleted, or the keys of its list items are corrected. Otherwise, the read serves
// only to name the field in the error.
func handleRejected(r *Rules, f Facts) Step {
	switch {
	case f.rejected == "":
		return f.fail(f.fault)
	case f.rejected == writeClaiming && f.Manifest.Strategy.Recreates:
		return replaceUnknown(r, f)
	case !r.Recreate || !response.IsImmutable(f.fault):
		return resetKeys(r, f)
	case f.Live == nil || f.Live.GetUID() != f.UID || !r.isMarked(f.Live, f.Ref()):
		return f.fail(f.fault)
	}
	return replaceObject(r, f, isReplaced)
}

// resetKeys changes the keys of list items back by an update. The manifest is applied afterwards, so that the item owns
// its fields again.
func resetKeys(r *Rules, f Facts) Step {
	if f.Live == nil || f.Live.GetUID() != f.UID || !r.isOwn(f.Live, f.Entry) {
		return f.fail(f.fault)
	}
	content, _ := jsondiff.MergeWantedByName(f.Live.Object, f.getBody().Object).(map[string]any)
	obj := &unstructured.Unstructured{Object: content}
	if isEqual(obj, f.Live) {
		return f.fail(f.fault)
	}
	return f.request(writeRekeying, Request{Effect: EffectUpdate, Body: obj, Manager: r.Owner.FieldManager()})
}

func handleRekeying(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassOK && r.DryRun:
		return f.handleSuccess(r)
	case f.class == response.ClassOK:
		f.Live = f.Answer
		return transferFields(r, f)
	case f.isConflict():
		return f.wait("changed while it was written")
	}
	return f.fail(f.fault)
}
