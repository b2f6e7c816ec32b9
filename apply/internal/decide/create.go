// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// createOnce is called after reading an object that is never updated.
func createOnce(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil:
		return f.create(r)
	case r.isOwnByLabel(live) || live.GetUID() == f.UID:
		f.UID, f.Hash, f.Fingerprint = live.GetUID(), f.Manifest.Hash, ""
		return f.doneUnchanged()
	}
	f.forget()
	return f.doneUntouched("already exists and does not belong to this item; the policy immutable leaves it unchanged")
}

// createObject creates an object with the strategy OnDelete.
func createObject(r *Rules, f Facts) Step {
	switch {
	case f.IsCurrent:
		return keepObject(r, f)
	case f.UID == "" || f.Hash == "":
		return f.create(r)
	}
	return f.read(writeReading)
}

func (f Facts) create(r *Rules) Step {
	return f.request(writeWriting, Request{Effect: EffectCreate, Body: f.Manifest.Object, Manager: r.Owner.FieldManager()})
}

// keepObject is called after reading an object with the strategy OnDelete. If the object belongs to the item, only the
// owner label and the owner annotations are restored.
func keepObject(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live == nil:
		f.forget()
		return f.create(r)
	case live.GetUID() != f.UID && !r.isOwnByLabel(live):
		f.forget()
		return claimObject(r, f)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.ListFinalizers(live))
	}
	if _, problem := r.canClaim(f); problem != nil {
		return rejectRival(r, f, problem)
	}
	if live.GetUID() != f.UID {
		f.forget()
		f.copyAdoption()
	}
	if f.UID = live.GetUID(); f.Hash == "" {
		f.Hash = f.Manifest.Hash
	}
	if owner, _ := ownership.GetOwner(live); owner == r.Owner && !ownership.IsReleased(live) {
		return f.doneUnchanged()
	}
	marks := &unstructured.Unstructured{Object: map[string]any{}}
	r.Owner.Mark(marks)
	if ownership.IsReleased(live) {
		_ = unstructured.SetNestedField(marks.Object, nil, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	return f.merge(r, writeRestoring, f.UID, marks.Object)
}

func handleRestoring(_ *Rules, f Facts) Step {
	if f.class != response.ClassOK {
		return f.handleFailure()
	}
	f.Final, f.Changed, f.Deleting, f.Version = f.Live, true, false, f.Live.GetResourceVersion()
	return f.doneDesired(CountApplied)
}
