// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// Rules contains what applies to all objects of one item.
type Rules struct {
	Owner ownership.Owner
	// DryRun means that writes are sent as dry runs, for a plan.
	DryRun bool
	// Force, RecreateFinished and Recreate are those of apply.Options.
	Force, RecreateFinished, Recreate bool
	// MustAskToCorrect means that EffectAsk must precede the correction of changes by other writers.
	MustAskToCorrect bool
	// CanFindOwners means that EffectFindOwners finds out whether an owner of the same Landscaper cluster exists.
	CanFindOwners bool
	// SharedKinds, LandscaperLabel and LandscaperManagers are those of apply.Options.
	SharedKinds        []schema.GroupKind
	LandscaperLabel    string
	LandscaperManagers []string
}

// isShared reports whether objects of this kind may belong to several items.
func (r *Rules) isShared(ref object.Ref) bool {
	return slices.Contains(r.SharedKinds, ref.GVK().GroupKind())
}

// canShare reports whether the item may own the object together with other items.
func (r *Rules) canShare(m *Manifest) bool {
	return r.isShared(m.Ref) && !m.Strategy.OnlyCreates && m.CanShare
}

// listOtherOwners returns the owners of an object except this item.
func (r *Rules) listOtherOwners(live metav1.Object) []ownership.Owner {
	return slices.DeleteFunc(ownership.ListOwners(live), r.Owner.IsSameItem)
}

// isSharedNow reports whether other items own the object already and this item may become one more owner. Owners in
// f.former do not count.
func (r *Rules) isSharedNow(f Facts) bool {
	return r.canShare(f.Manifest) && len(slices.DeleteFunc(r.listOtherOwners(f.Live), f.isFormer)) > 0
}

// isSecond reports whether the owner label of an object names another item, so that this item can only be an additional
// owner.
func (r *Rules) isSecond(live metav1.Object) bool {
	owner, owned := ownership.GetOwner(live)
	return owned && !r.Owner.IsSameItem(owner)
}

// getPart returns the manifest that this item applies if the owner label of the object names another item. It contains
// a separate annotation instead of the owner label.
func (r *Rules) getPart(f Facts) *unstructured.Unstructured {
	out := f.getBody().DeepCopy()
	r.Owner.MarkShared(out)
	return out
}

// isMarkedAdopted reports whether an object carries the annotation that marks it as adopted.
func isMarkedAdopted(live metav1.Object) bool {
	return live.GetAnnotations()[ownership.AnnotationAdopted] != ""
}

// markAdopted returns the object with the annotation that marks it as adopted. It does not modify obj.
func markAdopted(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if isMarkedAdopted(obj) {
		return obj
	}
	out := obj.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, "true", "metadata", "annotations", ownership.AnnotationAdopted)
	return out
}

// isOwnByLabel reports whether the owner label of the object names this item or an earlier item with the same name.
func (r *Rules) isOwnByLabel(live metav1.Object) bool {
	owner, owned := ownership.GetOwner(live)
	return owned && r.Owner.IsSameItem(owner)
}

// A UID in the inventory does not prove that an object belongs to the item: the inventory is stored in a status that
// other users may be able to change. An object is therefore deleted only if its labels, its annotations or its field
// managers name the item.

// isOwn reports whether a live object belongs to the item. An object with the UID of the inventory entry belongs to the
// item if isOwnByLabel or isMarked returns true. An object with another UID belongs to the item if isOwnByLabel returns
// true and the item in its label has written it. It may otherwise be a copy that another program made.
func (r *Rules) isOwn(live metav1.Object, e object.Entry) bool {
	if live.GetUID() == e.UID {
		return r.isOwnByLabel(live) || r.isMarked(live, e.Ref())
	}
	owner, _ := ownership.GetOwner(live)
	return r.isOwnByLabel(live) && owner.HasWritten(live)
}

// isMarked reports whether one of the following marks on an object names the item: the owner label, an owner
// annotation, the item's field manager, or the label of Landscaper's own deployer. The field manager is reliable
// because its name contains the item's UID, and because it remains if the label is removed. The label of Landscaper's
// own deployer contains only the item's name. If items may not share objects of this kind, an owner label that names
// another item takes precedence over all other marks.
func (r *Rules) isMarked(live metav1.Object, ref object.Ref) bool {
	owners := ownership.ListOwners(live)
	if len(owners) > 0 && !r.isShared(ref) {
		return r.isOwnByLabel(live)
	}
	if slices.ContainsFunc(owners, r.Owner.IsSameItem) {
		return true
	}
	if r.Owner.Name != "" && live.GetLabels()[r.LandscaperLabel] == r.Owner.Name {
		return true
	}
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == r.Owner.FieldManager()
	})
}

// isWatchedAsOwn reports whether, according to a watch, the object of the inventory carries the item's label. Such an
// object need not be read before it is deleted.
func (r *Rules) isWatchedAsOwn(f Facts) bool {
	return f.Watched != nil && f.UID != "" && r.Owner.UID != "" && f.Watched.UID == f.UID && f.Watched.Item == r.Owner.UID
}

// mustAsk reports whether EffectAsk must precede the correction of changes by other writers.
func (r *Rules) mustAsk(f Facts) bool {
	return r.MustAskToCorrect && !f.allowed && !r.Force && !r.DryRun && f.UID != "" && f.Hash == f.Manifest.Hash
}

// canClaim reports whether a live object belongs to this item, according to the owner label or the label of
// Landscaper's own deployer. An object of an earlier item with the same name, or of one of the owners in f.former, also
// belongs to this item. canClaim returns false without a problem if the object has no owner. It returns a problem if
// the object belongs to another item or is being deleted. See rejectRival for a problem that names the other item.
func (r *Rules) canClaim(f Facts) (bool, *Problem) {
	live := f.Live
	if live.GetDeletionTimestamp() != nil {
		return false, &Problem{Kind: ProblemWaiting, Reason: deletion.Format(live)}
	}
	if owner, owned := ownership.GetOwner(live); owned {
		if r.Owner.IsSameItem(owner) || f.isFormer(owner) {
			return true, nil
		}
		out := newForeign(fmt.Sprintf("deploy item %s (UID %s)", owner, owner.UID))
		out.rival = &owner
		return false, out
	}
	if r.isMarkedForAnother(f.Entry, live) {
		return false, r.newMarkedProblem(live)
	}
	_, marked := live.GetLabels()[r.LandscaperLabel]
	return marked, nil
}

// isMarkedForAnother reports whether Landscaper's own deployer labeled the object for another item. It returns false if
// the inventory contains the object's UID, for example because the inventory was converted from Landscaper's provider
// status. The inventory takes precedence over the label.
func (r *Rules) isMarkedForAnother(e object.Entry, live *unstructured.Unstructured) bool {
	name, marked := live.GetLabels()[r.LandscaperLabel]
	return marked && name != r.Owner.Name && live.GetUID() != e.UID
}

// newMarkedProblem returns the problem of an object that Landscaper's own deployer labeled for another item. The label
// does not name the namespace and the Landscaper cluster of the item, so it is not possible to find out whether the
// item still exists.
func (r *Rules) newMarkedProblem(live *unstructured.Unstructured) *Problem {
	out := newForeign(fmt.Sprintf("the Landscaper deploy item %q", live.GetLabels()[r.LandscaperLabel]))
	out.Reason += fmt.Sprintf("; if that item does not exist any more, remove the label %s from the object, or set it to %s", r.LandscaperLabel, r.Owner.Name)
	return out
}

// hasLeftovers reports whether the object has fields that Landscaper's own deployer, or this item with another
// strategy, wrote by updates. Server-side apply would not remove such fields when the manifest no longer contains them.
func (r *Rules) hasLeftovers(live *unstructured.Unstructured) bool {
	if live.GetDeletionTimestamp() != nil {
		return false
	}
	ours := live.GetLabels()[r.LandscaperLabel] == r.Owner.Name && r.Owner.Name != ""
	return slices.ContainsFunc(ownership.ListManagedFields(live), func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
			return false
		}
		return entry.Manager == r.Owner.FieldManager() || ours && slices.Contains(r.LandscaperManagers, entry.Manager)
	})
}

// isPreexisting reports whether another writer created the object. It returns true if another manager wrote the object
// when it was created, or if several managers wrote the object and the item did not write it then. It returns false if
// the item itself created the object, even if the process was stopped before it recorded this, unless another manager
// wrote the object within the same second.
func (r *Rules) isPreexisting(live *unstructured.Unstructured) bool {
	entries := ownership.ListManagedFields(live)
	ours, _ := ownership.FindApplyEntry(entries, r.Owner.FieldManager())
	others := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != r.Owner.FieldManager() && entry.Subresource == "" && isCreation(live, entry.Time)
	})
	return others || len(entries) > 1 && !isCreation(live, ours.Time)
}

// isCreation reports whether a manager that wrote the object at the given time has created it. The API server sets the
// time of a manager before it calls webhooks, and the creation time after that, so that the former may be earlier.
func isCreation(live *unstructured.Unstructured, written *metav1.Time) bool {
	return written != nil && !written.After(live.GetCreationTimestamp().Time)
}

// conflictWith finds the name of the other field manager in the error text of a conflict.
var conflictWith = regexp.MustCompile(`^conflict with "([^"]+)"`)

// findRivalValue examines a conflict over a shared object. If another item sets a different value for the same field,
// it returns a problem that names the other item. It returns nil if no deploy item is involved in the conflict.
func (r *Rules) findRivalValue(live metav1.Object, conflict error) *Problem {
	others := r.listOtherOwners(live)
	for _, cause := range response.ListCauses(conflict) {
		found := conflictWith.FindStringSubmatch(cause.Message)
		if found == nil || !ownership.IsFieldManager(found[1]) {
			continue
		}
		for _, other := range others {
			if other.FieldManager() == found[1] {
				return &Problem{Kind: ProblemInvalid, Path: cause.Field, Reason: fmt.Sprintf("deploy item %s also owns the object and sets another value", other)}
			}
		}
		return &Problem{Kind: ProblemWaiting, Reason: "changed while it was written"}
	}
	return nil
}

// CanFind reports whether it is possible to find out whether an owner exists. An item of another Landscaper cluster, or
// one whose annotations are missing, counts as existing.
func (r *Rules) CanFind(owner ownership.Owner) bool {
	return r.CanFindOwners && r.Owner.IsSameLandscape(owner) && owner.Namespace != "" && owner.Name != "" && owner.UID != ""
}

// isForeign reports whether the object that was read, in which other managers own fields, existed before the item wrote
// it.
func (r *Rules) isForeign(f Facts) bool {
	_, applied := ownership.FindApplyEntry(ownership.ListManagedFields(f.Live), r.Owner.FieldManager())
	return !applied || r.isPreexisting(f.Live)
}

// withoutFormer returns the object that was read. If its owners are in f.former, withoutFormer returns a copy that
// belongs to this item only.
func (r *Rules) withoutFormer(f Facts) *unstructured.Unstructured {
	if len(f.former) == 0 {
		return f.Live
	}
	out := f.Live.DeepCopy()
	r.Owner.Mark(out)
	for _, owner := range f.former {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations", owner.GetOwnerAnnotationKey())
	}
	return out
}

// isOwnMetadata reports whether a live object belongs to this item, so that the item may delete or release it.
func (r *Rules) isOwnMetadata(e object.Entry, live metav1.Object) bool {
	return r.isOwn(live, e) || (e.Adopted || r.isShared(e.Ref())) && slices.ContainsFunc(ownership.ListOwners(live), r.Owner.IsSameItem)
}
