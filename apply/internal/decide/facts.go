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

	Manifest *Manifest      // nil if the object is not desired
	Watched  *observe.State // the object as a watch last reported it, or nil
	// WasApplied means that the object was already applied in this run. The object then needs no further request,
	// unless it is gone or its fingerprint shows that another writer changed it.
	WasApplied bool
	// RemoveFinalizers means that the finalizers of the object are removed while it is being deleted.
	RemoveFinalizers bool
	// Webhooks is not nil if the object is a webhook configuration that is to be deleted only if it contains one of these
	// webhooks.
	Webhooks map[string]bool
	// Ignored means that the object is to be marked as released, because its policy is apply.PolicyIgnore now.
	Ignored bool

	// Live is the object as it was last read. It is nil if the object does not exist. IsCurrent means that no write
	// followed the read.
	Live      *unstructured.Unstructured
	IsCurrent bool
	// Answer is the object in the answer to the last write.
	Answer *unstructured.Unstructured
	// MayExist means that a write of this call succeeded, or may have had an effect although it failed.
	MayExist bool
	// Final is the object after the work on it, for the caller of the engine.
	Final  *unstructured.Unstructured
	Events []object.Event

	exchange
	progress
}

// exchange is the last request and the response to it.
type exchange struct {
	sent    Request
	class   response.Class
	err     error // the error of the response
	allowed bool  // the correction of the object was allowed
	// absent is what the error means for the existence of the object. For a read, it tells an object that is gone from
	// one that finished its work.
	absent absence.Meaning
	// owners are the states of the owners that the request asked for.
	owners []object.OwnerState
}

// progress is what the earlier steps of the call have found out and done.
type progress struct {
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

// ToAbsenceObject describes the object for the decision about what its absence means.
func (f Facts) ToAbsenceObject() absence.Object {
	ref := f.Ref()
	return absence.Object{Kind: ref.GVK().GroupKind(), Name: ref.Name, HasFinished: f.Finish != ""}
}

// isWatched reports whether a watch has reported the object of the inventory.
func (f Facts) isWatched() bool {
	return f.Watched != nil && f.UID != "" && !f.Deleting && f.Watched.UID == f.UID
}

// CanBeFinished reports whether the object is expected to disappear after its work, and was written with the current
// manifest. The inventory of an earlier version does not contain the Finish of an object, so the manifest counts, too.
func (f Facts) CanBeFinished(r *Rules) bool {
	return f.Finish != "" && f.UID != "" && f.Hash != "" && f.Hash == f.Manifest.Hash && !f.Deleting && !r.RecreateFinished
}

// isSettled reports whether the engine has finished writing the manifest in an earlier call.
func (f Facts) isSettled() bool {
	return f.UID != "" && !f.Deleting && !f.Pending && f.Hash != "" && (f.Hash == f.Manifest.Hash || f.Manifest.Strategy.OnlyCreates)
}

// isAsWanted reports whether an existing object needs no write. The parameter now is its current fingerprint.
func (f Facts) isAsWanted(now ownership.Fingerprint) bool {
	switch {
	case f.Manifest.IsCreateOnly:
		return true
	case f.Manifest.Strategy.OnlyCreates:
		return f.Hash != ""
	}
	return f.Manifest.Strategy.IsTracked && f.Hash == f.Manifest.Hash && f.Fingerprint != "" && f.Fingerprint == now
}

// hasFingerprint reports whether the object's current fingerprint equals the one after the item's last write. It also
// returns true if the inventory contains no fingerprint, because changes cannot be detected in that case.
func (f Facts) hasFingerprint(now ownership.Fingerprint) bool {
	return f.Fingerprint == "" || f.Fingerprint == now
}

// isFormer reports whether an owner of the object does not exist any more or has released the object.
func (p progress) isFormer(owner ownership.Owner) bool { return slices.Contains(p.former, owner) }

// needsPreparation reports whether a patch must be sent before the object is deleted.
func (f Facts) needsPreparation() bool {
	return !f.prepared && (len(f.AnnotateBeforeDelete) > 0 || len(f.PatchBeforeDelete) > 0)
}

// isConflict reports whether the request failed because the object has changed.
func (e exchange) isConflict() bool {
	return e.class == response.ClassConflict || e.class == response.ClassMismatch
}

// isRefused reports whether the request failed although the object still exists.
func (e exchange) isRefused() bool {
	return e.class != response.ClassOK && e.class != response.ClassGone && e.class != response.ClassMismatch
}

// forget clears the facts of the inventory about the object in the cluster. It keeps the reference to the object and
// the settings from the manifest.
func (f *Facts) forget() {
	f.Entry = f.ToUnwritten()
	f.Adopted = false
}

// recordEvent stores an event. The event is emitted after the last step.
func (f *Facts) recordEvent(reason, message string) {
	f.Events = append(f.Events, object.Event{Ref: f.Ref(), Reason: reason, Message: message})
}

// getBody returns the manifest that the item writes. If the object is adopted, it contains the annotation
// AnnotationAdopted.
func (f Facts) getBody() *unstructured.Unstructured {
	if f.Adopted {
		return markAdopted(f.Manifest.Object)
	}
	return f.Manifest.Object
}

// listFormerOwners returns the owners of the object that do not exist any more according to the response.
func (e exchange) listFormerOwners() []ownership.Owner {
	var out []ownership.Owner
	for i, owner := range e.sent.Owners {
		if i < len(e.owners) && e.owners[i] == object.OwnerGone {
			out = append(out, owner)
		}
	}
	return out
}
