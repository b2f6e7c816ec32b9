// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// claimObject writes an object if the inventory does not show an earlier write by the item. It applies the object
// without force, so that the API server reports conflicts with other managers. It reads the object first if an earlier
// call added the object to the inventory and the options refuse existing objects without an owner. In this case, it
// accepts an existing object only if the object belongs to the item, for example because an interrupted call created
// it, or if the item may share the object with its owners.
func claimObject(r *Rules, f Facts) Step {
	f.Adopted = f.Adopted && f.UID != ""
	switch {
	case r.DryRun && f.IsCurrent && f.Live != nil: // the object was read for the plan
		return handleContested(r, f)
	case f.IsNew || !f.Manifest.RejectUnowned:
	case !f.IsCurrent:
		return f.read(writeReading)
	case f.Live != nil && f.Live.GetDeletionTimestamp() == nil && !r.isSharedNow(f):
		mine, problem := r.canClaim(f)
		switch {
		case problem != nil:
			return rejectRival(r, f, problem)
		case !mine:
			return f.fail(newRefusal(f.Live))
		}
		f.copyAdoption()
		f.owned = true
	}
	return f.apply(r, writeClaiming, f.getBody(), "", false)
}

// handleClaiming is called after the first apply of an object.
func handleClaiming(r *Rules, f Facts) Step {
	m, live := f.Manifest, f.Answer
	switch {
	case f.class == response.ClassConflict:
		return f.resolveConflict(r)
	case f.class == response.ClassImmutable && !m.Strategy.Recreates && r.Recreate && f.UID != "" && r.isWatchedAsOwn(f):
		return replaceObject(r, f, isReplaced)
	case f.class == response.ClassImmutable && (m.Strategy.Recreates || r.Recreate && f.UID != ""):
		return f.readRejected(writeClaiming)
	case f.class != response.ClassOK:
		return f.handleFailure()
	case r.isMarkedForAnother(f.Entry, live):
		return f.removeApplied(r, r.newMarkedProblem(live))
	case r.hasLeftovers(live):
		f.Live = live
		return transferFields(r, f)
	case f.owned || live.GetUID() == f.UID || !r.isPreexisting(live) || live.GetDeletionTimestamp() != nil:
		return f.handleSuccess(r)
	case m.RejectUnowned:
		return f.removeApplied(r, newRefusal(live))
	}
	return f.adopt(r, "already existed and had no owner")
}

// resolveConflict is called after the first apply of an object failed because other managers own some of its fields. The
// object must be read, because only its UID allows taking over the fields of this object: if it is deleted before the
// forced apply arrives, the apply must not create it.
func (f Facts) resolveConflict(r *Rules) Step {
	if f.Live != nil {
		return handleContested(r, f)
	}
	return f.read(writeContested)
}

// removeApplied removes the item's fields from an object that the item applied without a conflict but must not own.
func (f Facts) removeApplied(r *Rules, problem *Problem) Step {
	f.fault = problem
	return f.applyNothing(r, writeWithdrawing, f.Answer.GetUID())
}

func handleWithdrawing(_ *Rules, f Facts) Step {
	if f.class != response.ClassOK {
		return f.handleFailure()
	}
	return f.fail(f.fault)
}

// handleContested is called after reading an object in which other managers own fields. It never takes fields from
// another item.
func handleContested(r *Rules, f Facts) Step {
	switch {
	case f.Live == nil:
		return f.wait("was deleted in the meantime")
	case r.isSharedNow(f):
		return shareObject(r, f)
	}
	mine, problem := r.canClaim(f)
	switch {
	case problem != nil:
		return rejectRival(r, f, problem)
	case mine:
		return transferFields(r, f)
	case !f.Manifest.SkipIfForeign && f.Manifest.RejectUnowned:
		return f.fail(newRefusal(f.Live))
	}
	return forceApply(r, f)
}

const hadFields = "already existed and had no owner; other managers had set some of its fields"

// forceApply applies the object with force. The item thereby takes over fields from managers that are not deploy items.
// If it is known that the object existed before, the same request marks the object as adopted.
func forceApply(r *Rules, f Facts) Step {
	if f.Manifest.SkipIfForeign {
		return f.done("") // another writer created the object first
	}
	obj := f.Manifest.Object
	if f.existed = r.isForeign(f); f.existed && f.Manifest.ReleaseAdopted {
		obj = markAdopted(obj)
	}
	return f.apply(r, writeTaking, obj, f.Live.GetUID(), true)
}

func handleTaking(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassMismatch:
		return f.wait("was deleted in the meantime")
	case f.class != response.ClassOK || f.Answer.GetDeletionTimestamp() != nil:
	case f.existed:
		f.recordAdoption(hadFields)
	case r.isPreexisting(f.Answer):
		return f.adopt(r, hadFields)
	}
	return handleWriting(r, f)
}

// adopt adopts an object that the last request wrote. Only the answer to that request showed that the object existed
// before, so a second request marks the object.
func (f Facts) adopt(r *Rules, message string) Step {
	if !f.Manifest.ReleaseAdopted {
		f.recordAdoption(message)
		return f.handleSuccess(r)
	}
	f.gained = &object.Event{Reason: object.ReasonAdopted, Message: message}
	return f.apply(r, writeWriting, markAdopted(f.Manifest.Object), f.Answer.GetUID(), true)
}

// recordAdoption records that the object already existed when the item applied it for the first time.
func (f *Facts) recordAdoption(message string) {
	if f.Adopted = f.Manifest.ReleaseAdopted; f.Adopted {
		message += "; it is kept when the item is deleted"
	}
	f.recordEvent(object.ReasonAdopted, message)
}

// recordGain records that the last write made the item the owner of the object.
func (f *Facts) recordGain() {
	gained := f.gained
	f.gained = nil
	switch {
	case gained == nil:
	case gained.Reason == object.ReasonAdopted:
		f.recordAdoption(gained.Message)
	default:
		f.recordEvent(gained.Reason, gained.Message)
	}
}

// copyAdoption records that the item takes over an object from an earlier item, or shares it with other items. If
// these items adopted the object, it also counts as adopted by this item. The adoption policy determines this for an
// object whose former owners are not earlier items with the same name.
func (f *Facts) copyAdoption() {
	f.Adopted = f.Adopted || isMarkedAdopted(f.Live) || len(f.former) > 0 && f.Manifest.ReleaseAdopted
}

// transferFields transfers the fields of earlier owners to this item and then applies the manifest. The apply removes
// the transferred fields that the manifest does not contain.
func transferFields(r *Rules, f Facts) Step {
	f.copyAdoption()
	updaters := append(slices.Clone(r.LandscaperManagers), r.Owner.FieldManager())
	if rename, needed := f.updateManagedFields(r, writeInheriting, updaters); needed {
		return rename
	}
	return f.applyInherited(r)
}

func handleInheriting(r *Rules, f Facts) Step {
	if end, failed := f.handleFailedRename(); failed {
		return end
	}
	return f.applyInherited(r)
}

// applyInherited applies an object whose fields were transferred to this item.
func (f Facts) applyInherited(r *Rules) Step {
	if f.UID == "" {
		f.gained = &object.Event{Reason: object.ReasonTakenOver, Message: f.describeTakeOver()}
	}
	return f.apply(r, writeWriting, f.getBody(), f.Live.GetUID(), true)
}

// describeTakeOver returns the message of the event that reports that the item has taken an object over.
func (f Facts) describeTakeOver() string {
	if len(f.former) == 0 {
		return "belonged to an earlier owner and now belongs to this item"
	}
	var names []string
	for _, owner := range f.former {
		names = append(names, owner.String())
	}
	text := fmt.Sprintf("belonged to deploy item %s, which does not exist any more or has released it, and now belongs to this item", strings.Join(names, ", "))
	if f.Adopted {
		text += "; it is kept when the item is deleted"
	}
	return text
}

// acquireRead makes the item the owner of an object that was read and whose strategy computes the new state. It returns
// the last step and true if the item must not own the object.
func acquireRead(r *Rules, f Facts) (Facts, Step, bool) {
	mine, problem := r.canClaim(f)
	if problem != nil {
		return f, rejectRival(r, f, problem), true
	}
	owner, owned := ownership.GetOwner(f.Live)
	switch {
	case owned && owner.UID == r.Owner.UID || f.UID != "":
	case mine:
		f.copyAdoption()
		f.recordEvent(object.ReasonTakenOver, f.describeTakeOver())
	case f.Manifest.RejectUnowned:
		return f, f.fail(newRefusal(f.Live)), true
	default:
		f.recordAdoption("already existed and had no owner")
	}
	return f, Step{}, false
}

// rejectRival is called if the item cannot claim an object. If the object belongs to another item that has released it
// or does not exist any more, this item becomes its successor. Otherwise, the work on the object ends with the problem.
func rejectRival(r *Rules, f Facts, problem *Problem) Step {
	if problem.rival == nil || f.Manifest.SkipIfForeign {
		return f.fail(problem)
	}
	rival := []ownership.Owner{*problem.rival}
	if ownership.IsReleased(f.Live) {
		return replaceOwners(r, f, rival)
	}
	if find, possible := f.findOwners(r, writeFindingOwner, rival); possible {
		return find
	}
	return f.newOwnedFailure(problem, object.OwnerUnknown)
}

func handleFindingOwner(r *Rules, f Facts) Step {
	if former := f.listFormerOwners(); len(former) > 0 {
		return replaceOwners(r, f, former)
	}
	_, problem := r.canClaim(f)
	return f.newOwnedFailure(problem, f.owners[0])
}

// newOwnedFailure ends the work on an object that belongs to another item.
func (f Facts) newOwnedFailure(problem *Problem, state object.OwnerState) Step {
	switch state {
	case object.OwnerExists:
		problem.Kind = ProblemOwned // as long as the other item exists, a retry does not help
		problem.Reason += "; to move it to this item, set its policy to keep in that item, and then remove it there"
	case object.OwnerDeleting:
		problem.Reason += ", until that item is deleted"
	case object.OwnerUnknown, object.OwnerGone:
		problem.Reason += ", because it is not known whether that item still exists; if it does not, remove the label " +
			ownership.LabelItem + " from the object"
	}
	return f.fail(problem)
}

// replaceOwners makes this item the successor of the former owners of an object. The adoption policy applies in the
// same way as to an object without an owner.
func replaceOwners(r *Rules, f Facts, former []ownership.Owner) Step {
	if f.Manifest.RejectUnowned {
		return f.fail(newConflict("already exists, belonged to deploy item %s, and is not adopted; allow adopting it, or delete it", former[0]))
	}
	f.former = append(slices.Clip(f.former), former...)
	return writeUnshared(r, f)
}

func isEqual(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}
