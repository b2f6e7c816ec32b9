// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// Facts contains what the engine knows about one object at a certain time during a call.
type Facts struct {
	object.Record

	Want *Manifest      // nil if the object is not desired
	Seen *observe.State // the object as a watch last reported it, or nil
	// WasApplied means that the object was already applied in this run. The object then needs no further request,
	// unless it is gone or its ownership key shows that another writer changed it.
	WasApplied bool
	// RemoveFinalizers means that the finalizers of the object are removed while it is being deleted.
	RemoveFinalizers bool
	// Webhooks is not nil if the object is a webhook configuration that is to be deleted only if it contains one of these
	// webhooks.
	Webhooks map[string]bool
	// Ignored means that the object is to be marked as released, because its policy is Ignore now.
	Ignored bool

	// Live is the object as it was last read. It is nil if the object does not exist. IsCurrent means that no write
	// followed the read.
	Live      *unstructured.Unstructured
	IsCurrent bool
	// Answer is the object in the answer to the last write.
	Answer *unstructured.Unstructured
	// MayExist means that a write of this call succeeded, or may have had an effect although it failed.
	MayExist bool
	// Outcome is the object after the work on it, for the caller of the engine.
	Outcome *unstructured.Unstructured
	Events  []object.Event

	sent    Request        // the last request that was sent
	class   response.Class // the class of the response to it
	err     error          // the error of the response to it
	allowed bool           // the correction of the object was allowed
	// absent is what the error means for the existence of the object. For a read, it tells an object that is gone from
	// one that finished its work.
	absent absence.Meaning
	// owners are the states of the owners that the last request asked for.
	owners []object.OwnerState

	former   []ownership.Owner // owners of the object that do not exist any more or have released it
	asked    bool              // it is known which owners of a shared object exist
	owned    bool              // the object belonged to the item before the first apply of this call
	existed  bool              // it is known that the object existed before the item wrote it
	prepared bool              // AnnotateBeforeDelete and PatchBeforeDelete were sent
	checked  bool              // the policy does not prevent a write
	fault    error             // the error of an earlier step; it is returned unless reading the object shows how to continue
	rejected State             // the state in which the API server rejected a write
	reason   string            // the reason of waiting after the object is deleted in order to be created again
	gained   *object.Event     // the event if the next write makes the item the owner of the object
	deleted  types.UID         // the UID in a delete request that failed
	heir     ownership.Owner   // the owner to which a shared object is handed over

	migrated    string // the API version that this call has last replaced in managedFields
	interrupted *Step  // the step that is taken again after managedFields were migrated
}

// Absence describes the object for the decision about what its absence means.
func (f Facts) Absence() absence.Object {
	ref := f.Ref()
	return absence.Object{Kind: ref.GVK().GroupKind(), Name: ref.Name, Finished: f.Finish != ""}
}

// isSeen reports whether a watch has reported the object of the inventory.
func (f Facts) isSeen() bool {
	return f.Seen != nil && f.UID != "" && !f.Deleting && f.Seen.UID == f.UID
}

// MayBeFinished reports whether the object is expected to disappear after its work, and was written with the current
// manifest. The inventory of an earlier version does not contain the Finish of an object, so the manifest counts, too.
func (f Facts) MayBeFinished(r *Rules) bool {
	return f.Finish != "" && f.UID != "" && f.Hash != "" && f.Hash == f.Want.Hash && !f.Deleting && !r.Rerun
}

// isSettled reports whether the engine has finished writing the manifest in an earlier call.
func (f Facts) isSettled() bool {
	return f.UID != "" && !f.Deleting && !f.Pending && f.Hash != "" && (f.Hash == f.Want.Hash || f.Want.Strategy.OnlyCreates)
}

// isAsWanted reports whether an existing object needs no write. The key is the ownership key that the object has now.
func (f Facts) isAsWanted(key ownership.Key) bool {
	switch {
	case f.Want.OnlyCreated:
		return true
	case f.Want.Strategy.OnlyCreates:
		return f.Hash != ""
	}
	return f.Want.Strategy.IsTracked && f.Hash == f.Want.Hash && f.Key != "" && f.Key == key
}

// hasKey compares the object's current ownership key with the key after the item's last write, and reports whether they
// are equal. It also returns true if the inventory contains no key, because changes cannot be detected in that case.
func (f Facts) hasKey(key ownership.Key) bool { return f.Key == "" || f.Key == key }

// isFormer reports whether an owner of the object does not exist any more or has released the object.
func (f Facts) isFormer(owner ownership.Owner) bool { return slices.Contains(f.former, owner) }

// needsPreparation reports whether a patch must be sent before the object is deleted.
func (f Facts) needsPreparation() bool {
	return !f.prepared && (len(f.AnnotateBeforeDelete) > 0 || len(f.PatchBeforeDelete) > 0)
}

// isConflict reports whether the last request failed because the object has changed.
func (f Facts) isConflict() bool {
	return f.class == response.Conflict || f.class == response.Mismatch
}

// isRefused reports whether the last request failed although the object still exists.
func (f Facts) isRefused() bool {
	return f.class != response.OK && f.class != response.Gone && f.class != response.Mismatch
}

// forget clears the facts of the inventory about the object in the cluster. It keeps the reference to the object and
// the settings from the manifest.
func (f *Facts) forget() {
	f.Entry = f.Unwritten()
	f.Adopted = false
}

// note stores an event. The event is emitted after the last step.
func (f *Facts) note(reason, message string) {
	f.Events = append(f.Events, object.Event{Ref: f.Ref(), Reason: reason, Message: message})
}

// body returns the manifest that the item writes. If the object is adopted, it contains the annotation
// AnnotationAdopted.
func (f Facts) body() *unstructured.Unstructured {
	if f.Adopted {
		return markAdopted(f.Want.Object)
	}
	return f.Want.Object
}

// formerOwners returns the owners of the object that do not exist any more, according to the answer to the last request.
func (f Facts) formerOwners() []ownership.Owner {
	var out []ownership.Owner
	for i, owner := range f.sent.Owners {
		if i < len(f.owners) && f.owners[i] == object.OwnerGone {
			out = append(out, owner)
		}
	}
	return out
}
