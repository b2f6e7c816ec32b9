// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// decideRemove returns the first step for the deletion of an object.
func decideRemove(r rules, k known) step {
	switch {
	case k.gone:
		return step{known: k}
	case k.Deleting:
		return k.confirm()
	case k.anyones, !r.isShared(k.Ref()) && !k.Adopted && r.showsAsOurs(k.seen, k.Entry):
		return decidePrepare(r, k, decidePrepared)
	}
	return k.readMetadata(decideOwned)
}

// decideOwned is called after reading an object that is to be deleted. If the object no longer belongs to the item,
// only its entry in the inventory is removed.
func decideOwned(r rules, k known) step {
	live := k.live
	switch {
	case live == nil && k.UID != "":
		return k.deleted()
	case live == nil:
		return k.leave()
	case !r.belongsHere(k.Entry, live):
		return k.letGo()
	}
	k.UID = live.GetUID()
	if !r.isShared(k.Ref()) {
		if k.Adopted {
			return decideUnmark(r, k)
		}
		return decidePrepare(r, k, decidePrepared)
	}
	return decideOwnedShared(r, k)
}

// decideOwnedShared deletes the object if no other item owns it. Otherwise it only removes this item's labels,
// annotations and fields. The request requires the resource version that was read. If another item becomes an owner or
// gives up the object in the meantime, the request therefore fails, and the item reads the object again.
func decideOwnedShared(r rules, k known) step {
	if k.live.GetDeletionTimestamp() != nil {
		k.Deleting = true
		return decideConfirm(r, k)
	}
	others := slices.DeleteFunc(r.others(k.live), k.isFormer)
	switch {
	case len(others) > 0 && !k.asked:
		k.asked = true
		return k.findOwners(r, others, func(r rules, k known, found *owners) step {
			k.former = found.gone()
			return decideOwnedShared(r, k)
		})
	case len(others) > 0:
		return decideResign(r, k, others[0])
	case k.Adopted, len(k.former) > 0: // a former owner may have left the object in the cluster on purpose
		return decideUnmark(r, k)
	case !k.prepared && k.hasBeforeDelete():
		return decidePrepare(r, k, again(func(_ rules, k known) step { return k.readMetadata(decideOwned) }))
	}
	return step{known: k, effect: effectDelete, uid: k.UID, version: k.live.GetResourceVersion(), next: func(r rules, k known) step {
		if k.result == resultGone {
			return k.deleted()
		}
		return again(decideDeleted)(r, k)
	}}
}

// again wraps a decision. If the last step succeeded, the wrapper calls the decision. If the last step failed because
// the object has changed, the wrapper reads the object again.
func again(next decision) decision {
	return func(r rules, k known) step {
		if k.result == resultOK {
			return next(r, k)
		}
		if k.result == resultConflict || k.result == resultMismatch {
			return k.readMetadata(decideOwned)
		}
		return k.fail(k.err)
	}
}

// belongsHere reports whether a live object belongs to this item.
func (r rules) belongsHere(e Entry, live metav1.Object) bool {
	return r.isOwn(live, e) || (e.Adopted || r.isShared(e.Ref())) && slices.ContainsFunc(ownership.OwnersOf(live), r.owner.SameItem)
}

// letGo ends the work on an object that the item does not own, and removes the object from the inventory.
func (k known) letGo() step {
	if k.live.GetUID() == k.UID {
		k.note(ReasonLeftAlone, "does not carry the label of this item, so it is no longer tracked and is not deleted")
	}
	return k.leave()
}

// decidePrepare sends AnnotateBeforeDelete and PatchBeforeDelete, if the entry contains them.
func decidePrepare(r rules, k known, next decision) step {
	if !k.hasBeforeDelete() {
		return next(r, k)
	}
	k.prepared = true
	annotations := map[string]any{}
	for key, value := range k.AnnotateBeforeDelete {
		annotations[key] = value
	}
	patch := jsondiff.Overlay(k.PatchBeforeDelete, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	return k.merge(r, k.UID, patch, next)
}

// decidePrepared deletes an object, provided that it has the UID that the inventory records.
func decidePrepared(r rules, k known) step {
	if k.prepared && k.result != resultOK {
		return decideDeleted(r, k)
	}
	return step{known: k, effect: effectDelete, uid: k.UID, next: decideDeleted}
}

// decideDeleted is called after a delete request.
func decideDeleted(_ rules, k known) step {
	if k.result == resultOK {
		k.Deleting = true
		return k.confirm()
	}
	if k.result == resultGone {
		return k.deleted()
	}
	if k.result != resultConflict && k.result != resultMismatch {
		return k.fail(k.err)
	}
	before := k.UID
	k.UID, k.fault = "", k.err
	return k.readMetadata(func(r rules, k known) step { return decideAnother(r, k, before) })
}

// decideAnother is called after a delete request, or the patch before it, failed with a conflict, usually because the
// object has another UID than expected. If the object belongs to the item and has the expected UID, decideAnother returns
// the error. If it belongs to the item and has another UID, for example because the process was stopped after the item
// created it, a later call deletes it. Otherwise, the entry is only removed from the inventory.
func decideAnother(r rules, k known, before types.UID) step {
	switch {
	case k.live == nil || !r.isOwn(k.live, k.Entry):
		return k.leave()
	case k.live.GetUID() == before:
		k.UID = before
		return k.fail(k.fault) // the conflict has another cause than the UID
	}
	k.UID = k.live.GetUID()
	return k.wait("was created again and will be deleted")
}

// confirm reads an object whose deletion the API server has accepted. It reads a Namespace as a whole, because only the
// spec and the status of a Namespace show why it still exists.
func (k known) confirm() step {
	if stageOf(k.Ref().GVK().GroupKind(), false) == stageNamespaces {
		return k.read(decideConfirm)
	}
	return k.readMetadata(decideConfirm)
}

// decideConfirm checks whether an object is gone. The API server has already accepted the deletion.
func decideConfirm(r rules, k known) step {
	live := k.live
	switch {
	case live == nil || live.GetUID() != k.UID:
		return k.deleted()
	case !k.anyones && !r.isMarked(live, k.Ref()):
		return k.letGo()
	case live.GetDeletionTimestamp() == nil:
		k.Deleting = false
		return k.wait("still exists, and will be deleted again")
	case k.removeFinalizers && len(live.GetFinalizers()) > 0:
		return k.merge(r, k.UID, map[string]any{"metadata": map[string]any{"finalizers": nil}}, func(_ rules, k known) step {
			if isRefused(k) {
				return k.fail(k.err)
			}
			return k.wait("is being deleted, its finalizers were removed")
		})
	}
	return k.wait("%s", deletion.Text(live))
}

// isRefused reports whether the last step failed although the object still exists.
func isRefused(k known) bool {
	return k.result != resultOK && k.result != resultGone && k.result != resultMismatch
}

// decideUnmark releases an object that existed before the item. It removes the owner label and the owner annotations,
// and then removes the object from the inventory.
func decideUnmark(r rules, k known) step {
	annotations := map[string]any{ownership.AnnotationAdopted: nil, r.owner.SharedKey(): nil}
	for _, key := range []string{ownership.AnnotationLandscape, ownership.AnnotationNamespace, ownership.AnnotationName} {
		annotations[key] = nil
	}
	reason := "existed before this item and is kept"
	for _, owner := range k.former {
		annotations[owner.SharedKey()] = nil
		reason = fmt.Sprintf("is kept, because deploy item %s, which does not exist any more, also owned it", owner)
	}
	metadata := map[string]any{"labels": map[string]any{ownership.LabelItem: nil}, "annotations": annotations}
	return k.merge(r, k.UID, map[string]any{"metadata": metadata}, func(_ rules, k known) step {
		if isRefused(k) {
			return k.fail(k.err)
		}
		k.note(ReasonReleased, reason)
		return k.leave()
	})
}

// decideResign removes this item's labels, annotations and fields from an object that other items still own. It removes
// the labels and annotations first. These requests fail if another writer changes the object in the meantime. If the
// process is stopped before the fields are removed, a later call removes the fields.
func decideResign(r rules, k known, next ownership.Owner) step {
	annotations := map[string]any{}
	for _, owner := range ownership.OwnersOf(k.live) {
		if _, found := k.live.GetAnnotations()[owner.SharedKey()]; found && r.owner.SameItem(owner) {
			annotations[owner.SharedKey()] = nil
		}
	}
	if len(annotations) == 0 {
		return decideHandOver(r, k, next)
	}
	metadata := map[string]any{"resourceVersion": k.live.GetResourceVersion(), "annotations": annotations}
	return k.merge(r, k.UID, map[string]any{"metadata": metadata}, again(func(r rules, k known) step {
		return decideHandOver(r, k.at(k.answer), next)
	}))
}

// decideHandOver changes the owner label and the owner annotations so that they name another item. The write uses the
// other item's field manager for patches, so that the other item does not detect the write as drift. The write is a
// server-side apply, so that the other item also owns the annotations that have the same value for both items.
// Otherwise, these annotations would be removed together with this item's fields.
func decideHandOver(r rules, k known, next ownership.Owner) step {
	if !r.isOurs(k.live) {
		return decideResigned(r, k, next)
	}
	body := k.Ref().empty()
	next.Stamp(body)
	return step{
		known: k, effect: effectApply, body: body, uid: k.UID, version: k.live.GetResourceVersion(), manager: next.PatchManager(), force: true,
		next: again(func(r rules, k known) step { return decideResigned(r, k.at(k.answer), next) }),
	}
}

// decideResigned removes the item's fields from the object.
func decideResigned(r rules, k known, next ownership.Owner) step {
	return decideTakeOver(r, k, []string{r.owner.Manager(), r.owner.PatchManager()}, func(r rules, k known) step {
		return k.applyNothing(r, k.UID, func(r rules, k known) step {
			if k.result == resultMismatch {
				k.result = resultOK
			}
			return again(func(_ rules, k known) step {
				k.note(ReasonReleased, fmt.Sprintf("is kept, because deploy item %s also owns it", next))
				return k.leave()
			})(r, k)
		})
	})
}
