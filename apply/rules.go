// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
	"github.com/deployerkit/deployerkit/observe"
)

// dataKinds lists the kinds for which the deletion of an object destroys data. The default Adoption for them is
// AdoptNever.
var dataKinds = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:                                   true,
	{Kind: "PersistentVolume"}:                            true,
	{Kind: "PersistentVolumeClaim"}:                       true,
	{Group: "apiextensions.k8s.io", Kind: definitionKind}: true,
}

// rules answers questions about the objects of one item. It sends no requests.
type rules struct {
	*Options

	owner ownership.Owner
	// dry means that writes are sent as dry runs, for Engine.Plan.
	dry bool
}

// isShared reports whether objects of this kind may belong to several items.
func (r rules) isShared(ref Ref) bool { return slices.Contains(r.SharedKinds, ref.GVK().GroupKind()) }

// mayShare reports whether the item may own the object together with other items.
func (r rules) mayShare(o *object) bool {
	return r.isShared(o.ref) && o.Strategy != OnDelete && (o.Policy == Manage || o.Policy == Keep)
}

// others returns the owners of an object except this item.
func (r rules) others(live metav1.Object) []ownership.Owner {
	return slices.DeleteFunc(ownership.OwnersOf(live), r.owner.SameItem)
}

// isSharedNow reports whether other items own the object already and this item may become one more owner. Owners in
// k.former do not count.
func (r rules) isSharedNow(k known) bool {
	return r.mayShare(k.want) && len(slices.DeleteFunc(r.others(k.live), k.isFormer)) > 0
}

// isSecond reports whether the owner label of an object names another item, so that this item can only be an additional
// owner.
func (r rules) isSecond(live metav1.Object) bool {
	owner, owned := ownership.OwnerOf(live)
	return owned && !r.owner.SameItem(owner)
}

// part returns the manifest that this item applies if the owner label of the object names another item. It contains a
// separate annotation instead of the owner label.
func (r rules) part(k known) *unstructured.Unstructured {
	out := bodyFor(k).DeepCopy()
	r.owner.StampShared(out)
	return out
}

// isMarkedAdopted reports whether an object carries the annotation that marks it as adopted.
func isMarkedAdopted(live metav1.Object) bool {
	return live.GetAnnotations()[ownership.AnnotationAdopted] != ""
}

// markedAdopted returns the object with the annotation that marks it as adopted. It does not modify obj.
func markedAdopted(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if isMarkedAdopted(obj) {
		return obj
	}
	out := obj.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, "true", "metadata", "annotations", ownership.AnnotationAdopted)
	return out
}

// isOurs reports whether the owner label of the object names this item or an earlier item with the same name.
func (r rules) isOurs(live metav1.Object) bool {
	owner, owned := ownership.OwnerOf(live)
	return owned && r.owner.SameItem(owner)
}

// A UID in the inventory does not prove that an object belongs to the item: the inventory is stored in a status that
// other users may be able to change. An object is therefore deleted only if its labels, its annotations or its field
// managers name the item.

// isOwn reports whether a live object belongs to the item. An object with the UID of the inventory entry belongs to the
// item if isOurs or isMarked returns true. An object with another UID belongs to the item if isOurs returns true and the
// item in its label has written it. It may otherwise be a copy that another program made.
func (r rules) isOwn(live metav1.Object, e Entry) bool {
	if live.GetUID() == e.UID {
		return r.isOurs(live) || r.isMarked(live, e.Ref())
	}
	owner, _ := ownership.OwnerOf(live)
	return r.isOurs(live) && owner.Wrote(live)
}

// isMarked reports whether one of the following marks on an object names the item: the owner label, an owner
// annotation, the item's field manager, or the label of Landscaper's own deployer. The field manager is reliable
// because its name contains the item's UID, and because it remains if the label is removed. The label of Landscaper's
// own deployer contains only the item's name. If items may not share objects of this kind, an owner label that names
// another item takes precedence over all other marks.
func (r rules) isMarked(live metav1.Object, ref Ref) bool {
	owners := ownership.OwnersOf(live)
	if len(owners) > 0 && !r.isShared(ref) {
		return r.isOurs(live)
	}
	if slices.ContainsFunc(owners, r.owner.SameItem) {
		return true
	}
	if r.owner.Name != "" && live.GetLabels()[r.LandscaperLabel] == r.owner.Name {
		return true
	}
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == r.owner.Manager()
	})
}

// showsAsOurs reports whether, according to a watch, the object of the entry carries the item's label. Such an object
// need not be read before it is deleted.
func (r rules) showsAsOurs(seen *observe.State, e Entry) bool {
	return seen != nil && e.UID != "" && r.owner.UID != "" && seen.UID == e.UID && seen.Item == r.owner.UID
}

// adoption returns the Adoption that applies to an object.
func (r rules) adoption(o *object) Adoption {
	switch {
	case o.Adoption != "":
		return o.Adoption
	case r.Adoption != "":
		return r.Adoption
	case dataKinds[o.ref.GVK().GroupKind()]:
		return AdoptNever
	}
	return AdoptIfUnowned
}

// refuses reports whether Apply returns an error if the object already exists without an owner.
func (r rules) refuses(o *object) bool { return r.RefuseUnowned && r.adoption(o) == AdoptNever }

// mayAsk reports whether the engine calls Options.MayHeal before it corrects changes by other writers.
func (r rules) mayAsk(k known) bool {
	return r.MayHeal != nil && !r.Force && !r.dry && k.UID != "" && k.Hash == k.want.hash
}

// claimable reports whether a live object belongs to this item, according to the owner label or the label of
// Landscaper's own deployer. An object of an earlier item with the same name, or of one of the owners in k.former, also
// belongs to this item. claimable returns false without an error if the object has no owner. It returns an error if the
// object belongs to another item or is being deleted. See decideRival for an error that names the other item.
func (r rules) claimable(k known) (bool, error) {
	ref, e, live := k.want.ref, k.Entry, k.live
	if live.GetDeletionTimestamp() != nil {
		return false, waiting(ref, "%s", deletion.Text(live))
	}
	if owner, owned := ownership.OwnerOf(live); owned {
		if r.owner.SameItem(owner) || k.isFormer(owner) {
			return true, nil
		}
		out := foreign(ref, fmt.Sprintf("deploy item %s (UID %s)", owner, owner.UID))
		out.rival = &owner
		return false, out
	}
	if r.isMarkedForAnother(e, live) {
		return false, r.markedForAnother(ref, live)
	}
	_, marked := live.GetLabels()[r.LandscaperLabel]
	return marked, nil
}

// isMarkedForAnother reports whether Landscaper's own deployer labeled the object for another item. It returns false if
// the inventory contains the object's UID, for example because the inventory was converted from Landscaper's provider
// status. The inventory takes precedence over the label.
func (r rules) isMarkedForAnother(e Entry, live *unstructured.Unstructured) bool {
	name, marked := live.GetLabels()[r.LandscaperLabel]
	return marked && name != r.owner.Name && live.GetUID() != e.UID
}

func (r rules) markedForAnother(ref Ref, live *unstructured.Unstructured) *Error {
	out := foreign(ref, fmt.Sprintf("the Landscaper deploy item %q", live.GetLabels()[r.LandscaperLabel]))
	// The label does not name the namespace and the Landscaper cluster of the item, so it is not possible to find out
	// whether the item still exists.
	out.Reason += fmt.Sprintf("; if that item does not exist any more, remove the label %s from the object, or set it to %s", r.LandscaperLabel, r.owner.Name)
	return out
}

// foreign returns the error for an object that belongs to another owner. A retry may succeed, because the other owner
// may release the object.
func foreign(ref Ref, owner string) *Error {
	return &Error{Ref: ref, Reason: "belongs to " + owner + " and is left unchanged", Class: Retry, Status: metav1.StatusReasonConflict}
}

// refusal returns the error for an existing object without an owner that must not be adopted.
func refusal(ref Ref, live metav1.Object) *Error {
	reason := fmt.Sprintf("already exists, belongs to %s, and is not adopted", holderOf(live))
	return &Error{Ref: ref, Reason: reason, Class: Retry, Status: metav1.StatusReasonConflict}
}

// maxHolders limits the number of managers that an error names.
const maxHolders = 3

// holderOf returns text that names the presumed creator of an object. This is the controller of the object or, if the
// object has no controller, the field managers that wrote it.
func holderOf(live metav1.Object) string {
	if controller := metav1.GetControllerOf(live); controller != nil {
		return controller.Kind + " " + controller.Name
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && !ownership.IsManager(entry.Manager) && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	if len(managers) == 0 {
		return "an unknown owner"
	}
	return "the field manager " + strings.Join(managers[:min(len(managers), maxHolders)], ", ")
}

// hasLeftovers reports whether the object has fields that Landscaper's own deployer, or this item with another
// strategy, wrote by updates. Server-side apply would not remove such fields when the manifest no longer contains them.
func (r rules) hasLeftovers(live *unstructured.Unstructured) bool {
	if live.GetDeletionTimestamp() != nil {
		return false
	}
	ours := live.GetLabels()[r.LandscaperLabel] == r.owner.Name && r.owner.Name != ""
	return slices.ContainsFunc(ownership.Entries(live), func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
			return false
		}
		return entry.Manager == r.owner.Manager() || ours && slices.Contains(r.LandscaperManagers, entry.Manager)
	})
}

// mayBeOwned examines the conflict error of an apply and reports whether the object may belong to another item. It
// returns true if the conflict concerns the owner label, or if it is a conflict with the field manager of one of
// Landscaper's own deployers.
func (r rules) mayBeOwned(conflict error) bool {
	return slices.ContainsFunc(causesOf(conflict), func(cause metav1.StatusCause) bool {
		return strings.Contains(cause.Field, ownership.LabelItem) || slices.ContainsFunc(r.LandscaperManagers, func(manager string) bool {
			return strings.Contains(cause.Message, `"`+manager+`"`)
		})
	})
}

// existedBefore reports whether another writer created the object. It returns true if another manager wrote the object
// at its creation time, or if several managers wrote the object and the item did not write it at that time. It returns
// false if the item itself created the object, even if the process was stopped before it recorded this, unless another
// manager wrote the object within the same second.
func (r rules) existedBefore(live *unstructured.Unstructured) bool {
	entries, created := ownership.Entries(live), live.GetCreationTimestamp()
	ours, _ := ownership.AppliedBy(entries, r.owner.Manager())
	others := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != r.owner.Manager() && entry.Subresource == "" && created.Equal(entry.Time)
	})
	return others || len(entries) > 1 && !created.Equal(ours.Time)
}

// conflictWith finds the name of the other field manager in the error text of a conflict.
var conflictWith = regexp.MustCompile(`^conflict with "([^"]+)"`)

// wantedTwice examines a conflict over a shared object. If another item sets a different value for the same field,
// wantedTwice returns an error that names the other item. It returns nil if no deploy item is involved in the conflict.
func (r rules) wantedTwice(ref Ref, live metav1.Object, conflict error) *Error {
	others := r.others(live)
	for _, cause := range causesOf(conflict) {
		found := conflictWith.FindStringSubmatch(cause.Message)
		if found == nil || !ownership.IsManager(found[1]) {
			continue
		}
		for _, other := range others {
			if other.Manager() == found[1] {
				return invalid(ref, cause.Field, "deploy item %s also owns the object and sets another value", other)
			}
		}
		return waiting(ref, "changed while it was written")
	}
	return nil
}
