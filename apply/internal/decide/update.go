// SPDX-License-Identifier: Apache-2.0

package decide

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// updateObject writes an object whose strategy computes the new state from the current one. The write contains the
// resourceVersion that was read, so it fails if the object has changed in the meantime.
func updateObject(r *Rules, f Facts) Step {
	if !f.IsCurrent {
		return f.read(writeReading)
	}
	return updateRead(r, f)
}

// updateRead updates an object that was read, unless the item must not own it.
func updateRead(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil:
		f.forget()
		return f.create(r)
	case r.isSharedNow(f):
		return shareObject(r, f)
	case live.GetUID() != f.UID:
		f.forget()
	}
	f, end, ended := acquireRead(r, f)
	if ended {
		return end
	}
	return updateOwned(r, f)
}

// updateOwned updates an object that was read and belongs to the item, or will belong to it after the update.
func updateOwned(r *Rules, f Facts) Step {
	live, want := f.Live, f.Manifest.compute(f.Entry, f.Live)
	if f.Adopted {
		want = markAdopted(want)
	}
	if ownership.IsReleased(want) {
		want = want.DeepCopy()
		unstructured.RemoveNestedField(want.Object, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	switch {
	case isEqual(live, want):
		if f.Hash != f.Manifest.Hash {
			f.StoredHash = ""
		}
		f.UID, f.Hash, f.Fingerprint = live.GetUID(), f.Manifest.Hash, ""
		return f.doneUnchanged()
	case f.UID == live.GetUID() && r.mustAsk(f):
		return f.request(writeAsking, Request{Effect: EffectAsk, Body: want})
	}
	request := Request{Effect: EffectUpdate, Body: want, Manager: r.Owner.FieldManager()}
	if f.Manifest.Strategy.SendsDifferences {
		version := map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()}}
		request.Strict, request.Effect, request.Patch = true, EffectPatch, jsondiff.MergeOverlay(jsondiff.MergePatch(live.Object, want.Object), version)
	}
	return f.request(writeUpdating, request)
}

func handleUpdating(r *Rules, f Facts) Step {
	switch {
	case f.isConflict() || f.class == response.ClassGone && apierrors.IsNotFound(f.err):
		return f.wait("changed while it was written")
	case f.class == response.ClassImmutable && r.Recreate && f.UID == f.Live.GetUID() && r.isOwn(f.Live, f.Entry):
		return replaceObject(r, f, isReplaced)
	}
	return handleWriting(r, f)
}
