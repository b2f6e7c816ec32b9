// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// Write returns the first step for a desired object. If the inventory or a watch shows that the object needs no
// request, this step ends the work on the object.
func Write(r *Rules, f Facts) Step {
	f.Finish = cmp.Or(f.Finish, object.GetFinish(f.Manifest.Object))
	return startWrite(r, f)
}

// Plan returns the first step for a desired object that was read.
func Plan(r *Rules, f Facts) Step { return requestWrite(r, f) }

// handleReading is called after the object was read. It decides again, now with the object.
func handleReading(r *Rules, f Facts) Step { return startWrite(r, f) }

// startWrite returns the first step for an object that must exist, or that may disappear after it has finished its
// work.
func startWrite(r *Rules, f Facts) Step {
	switch {
	case !f.CanBeFinished(r):
	case f.Finish == object.FinishGone, f.isWatched() && f.Watched.Deleting:
		return f.done(CountUnchanged)
	case f.isWatched():
	case !f.IsCurrent:
		return f.read(writeReading)
	default:
		if end, finished := handleFinished(r, f); finished {
			return end
		}
	}
	return skipUnchanged(r, f)
}

// handleFinished returns the last step for an object that is expected to disappear after its work and was read. It
// returns false if the object must be written.
func handleFinished(r *Rules, f Facts) (Step, bool) {
	live := f.Live
	switch {
	case live == nil && f.absent == absence.MeaningFinished:
		if f.Finish != object.FinishFailed {
			f.Finish = object.FinishGone
		}
		return f.done(CountUnchanged), true
	case live == nil || live.GetUID() != f.UID:
		return Step{}, false
	case live.GetDeletionTimestamp() != nil:
		f.Finish = object.GetFinish(live)
		return f.done(CountUnchanged), true
	case !r.Force && f.Fingerprint != "" && f.hasFingerprint(ownership.ComputeFingerprint(live, r.Owner.FieldManager())):
		return f.doneUnchanged(), true
	}
	return Step{}, false
}

// skipUnchanged ends the work on an object that is unchanged according to a watch or to the caller. Otherwise, it
// returns the first request.
func skipUnchanged(r *Rules, f Facts) Step {
	switch {
	case f.isWatched() && f.Watched.Deleting:
		return f.waitUntilGone(f.Watched.Finalizers)
	case f.Manifest.Unchanged && !r.Force && f.isSettled():
		return f.done(CountUnchanged)
	case !f.isWatched(), f.Pending:
	case f.WasApplied && f.hasFingerprint(f.Watched.Fingerprint), !r.Force && f.isAsWanted(f.Watched.Fingerprint):
		f.Version = f.Watched.ResourceVersion
		return f.done(CountUnchanged)
	case f.Manifest.Strategy.IsTracked && !f.Manifest.Strategy.Recreates && f.Fingerprint != "" && r.mustAsk(f):
		return f.request(writeAsking, Request{Effect: EffectAsk})
	}
	return requestWrite(r, f)
}

// requestWrite returns the first request for an object that may need a write. It reads the object first if the policy
// or an unfinished write requires this.
func requestWrite(r *Rules, f Facts) Step {
	wasWritten := f.Pending && f.Hash == f.Manifest.Hash && f.Fingerprint != "" || f.WasApplied
	readsFirst := wasWritten || f.Manifest.IsCreateOnly || f.Manifest.SkipIfForeign && f.UID == "" && !f.checked
	switch {
	case readsFirst && !f.IsCurrent:
		return f.read(writeReading)
	case wasWritten:
		return verifyWrite(r, f)
	case f.Manifest.IsCreateOnly:
		return createOnce(r, f)
	case readsFirst && f.Live != nil && !r.isOwnByLabel(f.Live):
		return f.doneUntouched("already exists and does not belong to this item; the policy fallback leaves it unchanged")
	}
	return writeByStrategy(r, f)
}

// verifyWrite is called after reading an object that an earlier call wrote. Such an object is read if it was not
// usable yet after that write (see Entry.Pending), or if no watch confirms that it is unchanged.
func verifyWrite(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil || live.GetUID() != f.UID || !f.hasFingerprint(ownership.ComputeFingerprint(live, r.Owner.FieldManager())):
		return writeByStrategy(r, f)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.ListFinalizers(live))
	}
	return f.doneUnchanged()
}

// writeByStrategy writes the object according to its strategy.
func writeByStrategy(r *Rules, f Facts) Step {
	f.checked = true
	switch {
	case f.Shared && r.canShare(f.Manifest):
		return f.apply(r, shareContributing, r.getPart(f), f.UID, false)
	case f.Shared:
		f.forget() // the owner label names another item
	}
	return f.Manifest.Strategy.write(r, f)
}

// handleAsking is called after the question whether changes by other writers may be corrected now.
func handleAsking(r *Rules, f Facts) Step {
	if f.err != nil {
		f.Final = f.Live
		return f.done(CountPostponed)
	}
	f.allowed = true
	if f.Manifest.Strategy.Recreates {
		return replaceObject(r, f, isDeleted)
	}
	return requestWrite(r, f)
}
