// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// Remove returns the first step for the deletion of an object.
func Remove(r *Rules, f Facts) Step {
	switch {
	case f.Gone:
		return f.done("")
	case f.Webhooks != nil:
		return f.read(removeExamining)
	case f.Deleting:
		return f.confirm()
	case f.AnyOwner, !r.isShared(f.Ref()) && !f.Adopted && r.isWatchedAsOwn(f):
		return removeOwned(r, f)
	}
	return f.readMetadata(removeExamining)
}

// handleExamining is called after reading an object that is to be deleted. If the object no longer belongs to the item,
// only its entry in the inventory is removed.
func handleExamining(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live != nil && f.Webhooks != nil && !hasWebhook(live, f.Webhooks):
		return f.done("")
	case live == nil && f.UID != "":
		return f.doneDeleted()
	case live == nil:
		return f.doneForgotten()
	case !r.isOwnMetadata(f.Entry, live):
		return f.doneForeign()
	}
	f.Adopted = f.Adopted && !r.isReplacement(f)
	f.UID, f.Webhooks = live.GetUID(), nil
	switch {
	case r.isShared(f.Ref()):
		return removeShared(r, f)
	case f.Adopted:
		return removeMarks(r, f)
	}
	return removeOwned(r, f)
}

// isReplacement reports whether the item has created the object that was read, after the object in the inventory was
// gone. The process may have ended before the inventory contained the new object.
func (r *Rules) isReplacement(f Facts) bool {
	return f.UID != "" && f.UID != f.Live.GetUID() && !isMarkedAdopted(f.Live) && !r.isPreexisting(f.Live)
}

// hasWebhook reports whether a webhook configuration contains a webhook with one of the given names.
func hasWebhook(configuration *unstructured.Unstructured, names map[string]bool) bool {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	return slices.ContainsFunc(webhooks, func(one any) bool {
		webhook, _ := one.(map[string]any)
		name, _ := webhook["name"].(string)
		return names[name]
	})
}

// removeOwned deletes an object that only this item owns, provided that it has the UID that the inventory records.
func removeOwned(r *Rules, f Facts) Step {
	if f.needsPreparation() {
		return f.prepareDeletion(r, removePreparing)
	}
	return f.remove(removeDeleting, "")
}

// removeShared deletes an object if no other item owns it. Otherwise it only removes this item's labels, annotations
// and fields. The request requires the resource version that was read. If another item becomes an owner or gives up the
// object in the meantime, the request therefore fails, and the item reads the object again.
func removeShared(r *Rules, f Facts) Step {
	if f.Live.GetDeletionTimestamp() != nil {
		f.Deleting = true
		return handleConfirming(r, f)
	}
	others := slices.DeleteFunc(r.listOtherOwners(f.Live), f.isFormer)
	if len(others) > 0 && !f.asked {
		f.asked = true
		if find, possible := f.findOwners(r, removeFindingOwners, others); possible {
			return find
		}
	}
	switch {
	case len(others) > 0:
		f.heir = others[0]
		return removeOwnership(r, f)
	case f.Adopted, len(f.former) > 0: // a former owner may have left the object in the cluster on purpose
		return removeMarks(r, f)
	case f.needsPreparation():
		return f.prepareDeletion(r, removePreparing)
	}
	return f.remove(removeDeleting, f.Live.GetResourceVersion())
}

func handleRemoveFindingOwners(r *Rules, f Facts) Step {
	f.former = f.listFormerOwners()
	return removeShared(r, f)
}

// retry returns the next step if the last request failed. If it failed because the object has changed, the object is
// read again. It returns false if the request succeeded.
func (f Facts) retry() (Step, bool) {
	switch {
	case f.class == response.ClassOK:
		return Step{}, false
	case f.isConflict():
		return f.readMetadata(removeExamining), true
	}
	return f.fail(f.err), true
}

// doneForeign ends the work on an object that the item does not own, and removes the object from the inventory.
func (f Facts) doneForeign() Step {
	if f.Live.GetUID() == f.UID {
		f.recordEvent(object.ReasonLeftAlone, "does not carry the label of this item, so it is no longer tracked and is not deleted")
	}
	return f.doneForgotten()
}

// handleRemovePreparing is called after the patch that precedes a deletion. An object that items may share is read
// again, because its deletion requires the resource version.
func handleRemovePreparing(r *Rules, f Facts) Step {
	mayBeShared := r.isShared(f.Ref()) && !f.AnyOwner
	switch {
	case !mayBeShared && f.class != response.ClassOK:
		return handleDeleting(r, f)
	case !mayBeShared:
		return f.remove(removeDeleting, "")
	}
	if next, failed := f.retry(); failed {
		return next
	}
	return f.readMetadata(removeExamining)
}

// handleDeleting is called after a delete request.
func handleDeleting(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassOK:
		f.Deleting = true
		return f.confirm()
	case f.class == response.ClassGone:
		return f.doneDeleted()
	case !f.isConflict():
		return f.fail(f.err)
	case r.isShared(f.Ref()) && !f.AnyOwner:
		return f.readMetadata(removeExamining)
	}
	f.deleted, f.UID, f.fault = f.UID, "", f.err
	return f.readMetadata(removeReexamining)
}

// handleReexamining is called after a delete request, or the patch before it, failed with a conflict, usually because
// the object has another UID than expected. If the object belongs to the item and has the expected UID, it returns the
// error. If it belongs to the item and has another UID, for example because the process was stopped after the item
// created it, a later call deletes it. Otherwise, the entry is only removed from the inventory.
func handleReexamining(r *Rules, f Facts) Step {
	switch {
	case f.Live == nil || !r.isOwn(f.Live, f.Entry):
		return f.doneForgotten()
	case f.Live.GetUID() == f.deleted:
		f.UID = f.deleted
		return f.fail(f.fault) // the conflict has another cause than the UID
	}
	f.UID = f.Live.GetUID()
	return f.wait("was created again and will be deleted")
}

// confirm reads an object whose deletion the API server has accepted. It reads a Namespace as a whole, because only the
// spec and the status of a Namespace show why it still exists.
func (f Facts) confirm() Step {
	if object.IsNamespace(f.Ref().GVK().GroupKind()) {
		return f.read(removeConfirming)
	}
	return f.readMetadata(removeConfirming)
}

// handleConfirming checks whether an object is gone. The API server has already accepted the deletion.
func handleConfirming(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live == nil || live.GetUID() != f.UID:
		return f.doneDeleted()
	case !f.AnyOwner && !r.isMarked(live, f.Ref()):
		return f.doneForeign()
	case live.GetDeletionTimestamp() == nil:
		f.Deleting = false
		return f.wait("still exists, and will be deleted again")
	case f.RemoveFinalizers && len(live.GetFinalizers()) > 0:
		return f.merge(r, removeFinalizing, f.UID, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
	return f.wait("%s", deletion.Format(live))
}

func handleFinalizing(_ *Rules, f Facts) Step {
	if f.isRefused() {
		return f.fail(f.err)
	}
	return f.wait("is being deleted, its finalizers were removed")
}

// removeMarks releases an object that existed before the item. It removes the owner label and the owner annotations,
// and then removes the object from the inventory.
func removeMarks(r *Rules, f Facts) Step {
	annotations := map[string]any{ownership.AnnotationAdopted: nil, r.Owner.GetOwnerAnnotationKey(): nil}
	for _, key := range []string{ownership.AnnotationLandscape, ownership.AnnotationNamespace, ownership.AnnotationName} {
		annotations[key] = nil
	}
	for _, owner := range f.former {
		annotations[owner.GetOwnerAnnotationKey()] = nil
	}
	metadata := map[string]any{"labels": map[string]any{ownership.LabelItem: nil}, "annotations": annotations}
	return f.merge(r, removeUnmarking, f.UID, map[string]any{"metadata": metadata})
}

func handleUnmarking(_ *Rules, f Facts) Step {
	if f.isRefused() {
		return f.fail(f.err)
	}
	reason := "existed before this item and is kept"
	for _, owner := range f.former {
		reason = fmt.Sprintf("is kept, because deploy item %s, which does not exist any more, also owned it", owner)
	}
	f.recordEvent(object.ReasonReleased, reason)
	return f.doneForgotten()
}

// removeOwnership removes this item's labels, annotations and fields from an object that other items still own. It
// removes the labels and annotations first. These requests fail if another writer changes the object in the meantime.
// If the process is stopped before the fields are removed, a later call removes the fields.
func removeOwnership(r *Rules, f Facts) Step {
	annotations := map[string]any{}
	for _, owner := range ownership.ListOwners(f.Live) {
		if _, found := f.Live.GetAnnotations()[owner.GetOwnerAnnotationKey()]; found && r.Owner.IsSameItem(owner) {
			annotations[owner.GetOwnerAnnotationKey()] = nil
		}
	}
	if len(annotations) == 0 {
		return updateOwnerLabel(r, f)
	}
	metadata := map[string]any{"resourceVersion": f.Live.GetResourceVersion(), "annotations": annotations}
	return f.merge(r, removeResigning, f.UID, map[string]any{"metadata": metadata})
}

func handleResigning(r *Rules, f Facts) Step {
	if next, failed := f.retry(); failed {
		return next
	}
	f.Live = f.Answer
	return updateOwnerLabel(r, f)
}

// updateOwnerLabel changes the owner label and the owner annotations so that they name another item. The write uses the
// other item's field manager for patches, so that the other item does not detect the write as drift. The write is a
// server-side apply, so that the other item also owns the annotations that have the same value for both items.
// Otherwise, these annotations would be removed together with this item's fields.
func updateOwnerLabel(r *Rules, f Facts) Step {
	if !r.isOwnByLabel(f.Live) {
		return removeOwnFields(r, f)
	}
	obj := object.New(f.Ref())
	f.heir.Mark(obj)
	return f.request(removeHandingOver, Request{
		Effect: EffectApply, Body: obj, UID: f.UID, Version: f.Live.GetResourceVersion(), Manager: f.heir.PatchFieldManager(), Force: true,
	})
}

func handleHandingOver(r *Rules, f Facts) Step {
	if next, failed := f.retry(); failed {
		return next
	}
	f.Live = f.Answer
	return removeOwnFields(r, f)
}

// removeOwnFields removes the item's fields from an object that other items own.
func removeOwnFields(r *Rules, f Facts) Step {
	if rename, needed := f.updateManagedFields(r, removeTransferring, []string{r.Owner.FieldManager(), r.Owner.PatchFieldManager()}); needed {
		return rename
	}
	return f.applyNothing(r, removeWithdrawing, f.UID)
}

func handleRemoveTransferring(r *Rules, f Facts) Step {
	if end, failed := f.handleFailedRename(); failed {
		return end
	}
	return f.applyNothing(r, removeWithdrawing, f.UID)
}

func handleRemoveWithdrawing(_ *Rules, f Facts) Step {
	if next, failed := f.retry(); failed && f.class != response.ClassMismatch {
		return next
	}
	f.recordEvent(object.ReasonReleased, fmt.Sprintf("is kept, because deploy item %s also owns it", f.heir))
	return f.doneForgotten()
}
