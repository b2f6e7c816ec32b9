// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// shareObject is called after reading an object that other items own as well. It applies only this item's fields,
// always by server-side apply. The other strategies would overwrite the fields of the other owners.
func shareObject(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.ListFinalizers(live))
	case r.isMarkedForAnother(f.Entry, live):
		return f.fail(r.newMarkedProblem(live))
	case live.GetUID() != f.UID:
		f.forget()
	}
	others := r.listOtherOwners(live)
	find, possible := f.findOwners(r, shareFindingOwners, others)
	switch {
	case f.UID != "":
	case possible:
		return find
	case len(others) == 0:
		f.former = nil
		return writeUnshared(r, f)
	}
	return joinOwners(r, f)
}

func handleShareFindingOwners(r *Rules, f Facts) Step {
	gone := f.listFormerOwners()
	if len(gone) < len(f.sent.Owners) {
		return joinOwners(r, f)
	}
	f.former = gone
	return writeUnshared(r, f)
}

// writeUnshared writes an object that was read and has no other owners, or only former ones.
func writeUnshared(r *Rules, f Facts) Step {
	if f.Manifest.Strategy.mustRead() {
		return updateRead(r, f)
	}
	return handleContested(r, f)
}

// joinOwners makes the item one more owner of an object. At least one of the other owners exists.
func joinOwners(r *Rules, f Facts) Step {
	f.copyAdoption()
	if rename, needed := f.updateManagedFields(r, shareTransferring, []string{r.Owner.FieldManager()}); needed {
		return rename
	}
	return applyShared(r, f, false)
}

func handleShareTransferring(r *Rules, f Facts) Step {
	if end, failed := f.handleFailedRename(); failed {
		return end
	}
	return applyShared(r, f, false)
}

// applyShared applies this item's fields to a shared object.
func applyShared(r *Rules, f Facts, force bool) Step {
	obj := f.getBody()
	if r.isSecond(f.Live) {
		obj = r.getPart(f)
	}
	return f.apply(r, shareJoining, obj, f.Live.GetUID(), force)
}

// handleShareJoining is called after applying this item's fields to a shared object. After a conflict, it takes over
// fields from managers that are not deploy items. It never takes over fields from another owner, because both items
// would then overwrite each other repeatedly.
func handleShareJoining(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassMismatch:
		return f.wait("changed while it was written")
	case f.class == response.ClassConflict && !f.sent.Force:
		if problem := r.findRivalValue(f.Live, f.err); problem != nil {
			return f.fail(problem)
		}
		return applyShared(r, f, true)
	case f.class != response.ClassOK:
		return f.handleFailure()
	}
	out := doneShared(r, f)
	out.Facts.Changed = f.Answer.GetResourceVersion() != f.Live.GetResourceVersion()
	return out
}

// handleShareContributing is called after the item applied its part of a shared object whose owner label named another
// item.
func handleShareContributing(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassMismatch:
		f.forget()
		return writeByStrategy(r, f)
	case f.class == response.ClassConflict:
		return f.read(shareDisputed)
	case f.class != response.ClassOK:
		return f.handleFailure()
	case !r.isSecond(f.Answer):
		f.Live = f.Answer
		return shareObject(r, f) // the owner label now names this item
	}
	return doneShared(r, f)
}

// handleDisputed is called after an apply has failed with a conflict over fields and the object has been read.
func handleDisputed(r *Rules, f Facts) Step {
	if f.Live == nil || f.Live.GetUID() != f.UID {
		f.forget()
		return f.wait("was deleted in the meantime")
	}
	return shareObject(r, f)
}

// doneShared ends the work on an object with several owners after a successful write. It records a fingerprint
// only if the owner label names this item, because watches compute the key only for the item in that label.
func doneShared(r *Rules, f Facts) Step {
	before, live := f.Shared, f.Answer
	out := f.handleSuccess(r)
	if live.GetDeletionTimestamp() != nil {
		return out
	}
	to := &out.Facts
	if to.Shared = r.isSecond(live); !to.Shared {
		return out
	}
	to.Fingerprint = ""
	if owner, _ := ownership.GetOwner(live); !before {
		to.recordEvent(object.ReasonShared, fmt.Sprintf("belongs to deploy item %s and now also to this item", owner))
	}
	return out
}
