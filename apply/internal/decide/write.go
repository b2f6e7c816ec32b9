// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// Write returns the first step for a desired object. If the inventory or a watch shows that the object needs no request,
// this step ends the work on the object.
func Write(r *Rules, f Facts) Step {
	f.Finish = cmp.Or(f.Finish, object.FinishOf(f.Want.Object))
	return startWrite(r, f)
}

// Plan returns the first step for a desired object that was read.
func Plan(r *Rules, f Facts) Step { return requestWrite(r, f) }

// handleReading is called after the object was read. It decides again, now with the object.
func handleReading(r *Rules, f Facts) Step { return startWrite(r, f) }

// startWrite returns the first step for an object that must exist, or that may disappear after it has finished its work.
func startWrite(r *Rules, f Facts) Step {
	switch {
	case !f.MayBeFinished(r):
	case f.Finish == object.FinishGone, f.isSeen() && f.Seen.Deleting:
		return f.end(CountUnchanged)
	case f.isSeen():
	case !f.IsCurrent:
		return f.read(writeReading)
	default:
		if end, finished := endFinished(r, f); finished {
			return end
		}
	}
	return skipUnchanged(r, f)
}

// endFinished returns the last step for an object that is expected to disappear after its work and was read. It returns
// false if the object must be written.
func endFinished(r *Rules, f Facts) (Step, bool) {
	live := f.Live
	switch {
	case live == nil && f.absent == absence.Done:
		if f.Finish != object.FinishFailed {
			f.Finish = object.FinishGone
		}
		return f.end(CountUnchanged), true
	case live == nil || live.GetUID() != f.UID:
		return Step{}, false
	case live.GetDeletionTimestamp() != nil:
		f.Finish = object.FinishOf(live)
		return f.end(CountUnchanged), true
	case !r.Force && f.Key != "" && f.hasKey(ownership.KeyOf(live, r.Owner.Manager())):
		return f.leaveUnchanged(), true
	}
	return Step{}, false
}

// skipUnchanged ends the work on an object that is unchanged according to a watch or to the caller. Otherwise, it returns
// the first request.
func skipUnchanged(r *Rules, f Facts) Step {
	switch {
	case f.isSeen() && f.Seen.Deleting:
		return f.waitUntilGone(f.Seen.Finalizers)
	case f.Want.Unchanged && !r.Force && f.isSettled():
		return f.end(CountUnchanged)
	case !f.isSeen(), f.Pending:
	case f.WasApplied && f.hasKey(f.Seen.Key), !r.Force && f.isAsWanted(f.Seen.Key):
		f.Version = f.Seen.ResourceVersion
		return f.end(CountUnchanged)
	case f.Want.Strategy.IsTracked && !f.Want.Strategy.Recreates && f.Key != "" && r.mustAsk(f):
		return f.request(writeAsking, Request{Effect: EffectAsk})
	}
	return requestWrite(r, f)
}

// requestWrite returns the first request for an object that may need a write. It reads the object first if the policy or
// an unfinished write requires this.
func requestWrite(r *Rules, f Facts) Step {
	wasWritten := f.Pending && f.Hash == f.Want.Hash && f.Key != "" || f.WasApplied
	readsFirst := wasWritten || f.Want.OnlyCreated || f.Want.LeftToOthers && f.UID == "" && !f.checked
	switch {
	case readsFirst && !f.IsCurrent:
		return f.read(writeReading)
	case wasWritten:
		return verifyWrite(r, f)
	case f.Want.OnlyCreated:
		return createOnce(r, f)
	case readsFirst && f.Live != nil && !r.isOurs(f.Live):
		return f.leaveAlone("already exists and does not belong to this item; the policy fallback leaves it unchanged")
	}
	return writeByStrategy(r, f)
}

// verifyWrite is called after reading an object that an earlier call wrote. Such an object is read if it was not
// usable yet after that write (see Entry.Pending), or if no watch confirms that it is unchanged.
func verifyWrite(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil || live.GetUID() != f.UID || !f.hasKey(ownership.KeyOf(live, r.Owner.Manager())):
		return writeByStrategy(r, f)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.Finalizers(live))
	}
	return f.leaveUnchanged()
}

// createOnce is called after reading an object that is never updated.
func createOnce(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil:
		return f.create(r)
	case r.isOurs(live) || live.GetUID() == f.UID:
		f.UID, f.Hash, f.Key = live.GetUID(), f.Want.Hash, ""
		return f.leaveUnchanged()
	}
	f.forget()
	return f.leaveAlone("already exists and does not belong to this item; the policy immutable leaves it unchanged")
}

// writeByStrategy writes the object according to its strategy.
func writeByStrategy(r *Rules, f Facts) Step {
	f.checked = true
	switch {
	case f.Shared && r.mayShare(f.Want):
		return f.apply(r, shareContributing, r.part(f), f.UID, false)
	case f.Shared:
		f.forget() // the owner label names another item
	}
	return f.Want.Strategy.write(r, f)
}

// handleAsking is called after the question whether changes by other writers may be corrected now.
func handleAsking(r *Rules, f Facts) Step {
	if f.err != nil {
		f.Outcome = f.Live
		return f.end(CountPostponed)
	}
	f.allowed = true
	if f.Want.Strategy.Recreates {
		return replaceObject(r, f, isDeleted)
	}
	return requestWrite(r, f)
}

// applyObject applies an object with the strategy Apply. If the item wrote the object before, the request requires the
// recorded UID, so that it cannot change a different object.
func applyObject(r *Rules, f Facts) Step {
	if f.Hash == "" || f.UID == "" {
		return claimObject(r, f)
	}
	force := !r.mayShare(f.Want) || f.Hash == f.Want.Hash // a new manifest may set fields of another owner
	return f.apply(r, writeApplying, f.body(), f.UID, force)
}

// handleApplying is called after applying an object of the inventory.
func handleApplying(r *Rules, f Facts) Step {
	switch {
	case f.class == response.OK && r.hasLeftovers(f.Answer):
		f.Live = f.Answer
		return inheritFields(r, f)
	case f.class == response.Mismatch:
		f.forget()
		return claimObject(r, f)
	case f.class == response.Conflict && !f.sent.Force && f.Live != nil:
		return handleDisputed(r, f)
	case f.class == response.Conflict && !f.sent.Force:
		return f.read(shareDisputed)
	case f.class == response.Immutable && r.Recreate && r.isSeenAsOwn(f):
		return replaceObject(r, f, isReplaced)
	case f.class == response.Immutable && r.Recreate, response.IsAmbiguous(f.err):
		return f.readRejected(writeApplying)
	}
	return handleWriting(r, f)
}

// readRejected reads an object because the API server rejected a write in a state.
func (f Facts) readRejected(state State) Step {
	f.fault, f.rejected = f.err, state
	return f.read(writeRejected)
}

// handleRejected is called after the API server rejected a write and the object was read. If the state in which this
// happened allows it, the object is deleted, or the keys of its list items are corrected. Otherwise, the read serves only
// to name the field in the error.
func handleRejected(r *Rules, f Facts) Step {
	switch {
	case f.rejected == "":
		return f.fail(f.fault)
	case f.rejected == writeClaiming && f.Want.Strategy.Recreates:
		return replaceUnknown(r, f)
	case !r.Recreate || !response.IsImmutable(f.fault):
		return correctKeys(r, f)
	case f.Live == nil || f.Live.GetUID() != f.UID || !r.isMarked(f.Live, f.Ref()):
		return f.fail(f.fault)
	}
	return replaceObject(r, f, isReplaced)
}

// correctKeys changes the keys of list items back by an update. The manifest is applied afterwards, so that the item owns
// its fields again.
func correctKeys(r *Rules, f Facts) Step {
	if f.Live == nil || f.Live.GetUID() != f.UID || !r.isOwn(f.Live, f.Entry) {
		return f.fail(f.fault)
	}
	content, _ := fields.Rekey(f.Live.Object, f.body().Object).(map[string]any)
	obj := &unstructured.Unstructured{Object: content}
	if isEqual(obj, f.Live) {
		return f.fail(f.fault)
	}
	return f.request(writeRekeying, Request{Effect: EffectUpdate, Body: obj, Manager: r.Owner.Manager()})
}

func handleRekeying(r *Rules, f Facts) Step {
	switch {
	case f.class == response.OK && r.DryRun:
		return f.finishWrite(r)
	case f.class == response.OK:
		f.Live = f.Answer
		return inheritFields(r, f)
	case f.isConflict():
		return f.wait("changed while it was written")
	}
	return f.fail(f.fault)
}

// updateObject writes an object whose strategy computes the new state from the current one. The write contains the
// resourceVersion that was read, so it fails if the object has changed in the meantime.
func updateObject(r *Rules, f Facts) Step {
	if !f.IsCurrent {
		return f.read(writeReading)
	}
	return updateRead(r, f)
}

// updateRead updates an object that was read, unless the item must not own it.
func updateRead(r *Rules, f Facts) Step {
	switch live := f.Live; {
	case live == nil:
		f.forget()
		return f.create(r)
	case r.isSharedNow(f):
		return shareObject(r, f)
	case live.GetUID() != f.UID:
		f.forget()
	}
	f, end, ended := acquireRead(r, f)
	if ended {
		return end
	}
	return updateOwned(r, f)
}

// updateOwned updates an object that was read and belongs to the item, or will belong to it after the update.
func updateOwned(r *Rules, f Facts) Step {
	live, want := f.Live, f.Want.compute(f.Entry, f.Live)
	if f.Adopted {
		want = markAdopted(want)
	}
	if ownership.IsReleased(want) {
		want = want.DeepCopy()
		unstructured.RemoveNestedField(want.Object, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	switch {
	case isEqual(live, want):
		if f.Hash != f.Want.Hash {
			f.Norm = ""
		}
		f.UID, f.Hash, f.Key = live.GetUID(), f.Want.Hash, ""
		return f.leaveUnchanged()
	case f.UID == live.GetUID() && r.mustAsk(f):
		return f.request(writeAsking, Request{Effect: EffectAsk, Body: want})
	}
	request := Request{Effect: EffectUpdate, Body: want, Manager: r.Owner.Manager()}
	if f.Want.Strategy.SendsDifferences {
		version := map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()}}
		request.Strict, request.Effect, request.Patch = true, EffectPatch, fields.Overlay(fields.MergePatch(live.Object, want.Object), version)
	}
	return f.request(writeUpdating, request)
}

func handleUpdating(r *Rules, f Facts) Step {
	switch {
	case f.isConflict() || f.class == response.Gone && isNotFound(f.err):
		return f.wait("changed while it was written")
	case f.class == response.Immutable && r.Recreate && f.UID == f.Live.GetUID() && r.isOwn(f.Live, f.Entry):
		return replaceObject(r, f, isReplaced)
	}
	return handleWriting(r, f)
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
	return f.request(writeWriting, Request{Effect: EffectCreate, Body: f.Want.Object, Manager: r.Owner.Manager()})
}

// keepObject is called after reading an object with the strategy OnDelete. If the object belongs to the item, only the
// owner label and the owner annotations are restored.
func keepObject(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live == nil:
		f.forget()
		return f.create(r)
	case live.GetUID() != f.UID && !r.isOurs(live):
		f.forget()
		return claimObject(r, f)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.Finalizers(live))
	}
	if _, problem := r.claimable(f); problem != nil {
		return rejectRival(r, f, problem)
	}
	if live.GetUID() != f.UID {
		f.forget()
		f.inheritAdoption()
	}
	if f.UID = live.GetUID(); f.Hash == "" {
		f.Hash = f.Want.Hash
	}
	if owner, _ := ownership.OwnerOf(live); owner == r.Owner && !ownership.IsReleased(live) {
		return f.leaveUnchanged()
	}
	marks := &unstructured.Unstructured{Object: map[string]any{}}
	r.Owner.Stamp(marks)
	if ownership.IsReleased(live) {
		_ = unstructured.SetNestedField(marks.Object, nil, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	return f.merge(r, writeRestoring, f.UID, marks.Object)
}

func handleRestoring(_ *Rules, f Facts) Step {
	if f.class != response.OK {
		return f.failWrite()
	}
	f.Outcome, f.Changed, f.Deleting, f.Version = f.Live, true, false, f.Live.GetResourceVersion()
	return f.finish(CountApplied)
}

// handleWriting is called after the last write of an object. If an object with the strategy OnDelete already exists, the
// object is read.
func handleWriting(r *Rules, f Facts) Step {
	switch {
	case f.class == response.Exists && f.sent.Effect == EffectCreate && f.Want.Strategy.OnlyCreates && !f.Want.OnlyCreated:
		return f.read(writeReading)
	case f.class != response.OK:
		return f.failWrite()
	}
	f.recordGain()
	return f.finishWrite(r)
}

// failWrite ends the work on the object with the error of the last write. If the error is about an immutable field and the
// object was not read yet, failWrite reads the object first, so that the error can name the field.
func (f Facts) failWrite() Step {
	if f.class != response.Immutable || f.Live != nil {
		return f.fail(f.err)
	}
	return f.readRejected("")
}

// finishWrite ends the work on the object after a successful write.
func (f Facts) finishWrite(r *Rules) Step {
	m, live := f.Want, f.Answer
	f.Outcome = live
	if live.GetDeletionTimestamp() != nil {
		f.Hash, f.Key = "", ""
		return f.waitUntilGone(deletion.Finalizers(live))
	}
	if ownership.IsReleased(live) && !r.DryRun {
		return f.mergeAnnotations(r, writeWriting, live.GetUID(), map[string]any{ownership.AnnotationPolicy: nil})
	}
	before := f.Entry
	f.UID, f.Hash, f.Key, f.Norm, f.Version = live.GetUID(), m.Hash, "", m.norm(live), live.GetResourceVersion()
	if m.Strategy.IsTracked && !m.OnlyCreated {
		f.Key = ownership.KeyOf(live, r.Owner.Manager())
	}
	f.Changed = f.Key == "" || f.Key != before.Key || f.Hash != before.Hash
	f.PatchDue, f.Deleting = len(m.PatchAfterDeployment) > 0, false
	return f.finish(CountApplied)
}

// finish ends the work on an object that has the desired state. If later stages cannot use the object yet, it counts as
// waiting.
func (f Facts) finish(count Count) Step {
	out := Result{Count: count, Usable: true}
	kind := f.Want.Ref.GVK().GroupKind()
	phase, _, _ := unstructured.NestedString(f.Outcome.Object, "status", "phase")
	switch {
	case object.IsDefinition(kind) && !object.HasCondition(f.Outcome, "Established"):
		out.Err = &Problem{Kind: ProblemWaiting, Reason: "is not established yet"}
	case object.IsNamespace(kind) && phase == string(corev1.NamespaceTerminating):
		out.Err = &Problem{Kind: ProblemWaiting, Reason: deletion.Text(f.Outcome)}
	}
	f.Pending, f.Finish = out.Err != nil, object.FinishOf(f.Outcome)
	return Step{Facts: f, Result: out}
}

// leaveUnchanged ends the work on an object that was read, without a write.
func (f Facts) leaveUnchanged() Step {
	f.Outcome, f.Deleting, f.Version = f.Live, false, f.Live.GetResourceVersion()
	return f.finish(CountUnchanged)
}

// leaveAlone ends the work on an object that was read, without changing it, and emits an event.
func (f Facts) leaveAlone(message string) Step {
	f.Outcome = f.Live
	f.note(object.ReasonLeftAlone, message)
	return f.end("")
}

// waitUntilGone ends the work on an object that must be gone before it can be created again.
func (f Facts) waitUntilGone(finalizers []string) Step {
	return f.wait(isDeleted, deletion.Held(finalizers))
}

// PatchAfterDeployment returns the step that sends Manifest.PatchAfterDeployment.
func PatchAfterDeployment(r *Rules, f Facts) Step {
	out := f.merge(r, writePatching, f.UID, f.Want.PatchAfterDeployment)
	out.Strict = true
	return out
}

func handlePatching(r *Rules, f Facts) Step {
	switch {
	case f.absent == absence.Done:
		f.Finish = object.FinishGone
		return f.end(CountUnchanged)
	case f.class != response.OK:
		return f.fail(f.err)
	}
	f.Version = f.Answer.GetResourceVersion()
	if f.PatchDue = false; f.Key != "" {
		f.Key = ownership.KeyOf(f.Answer, r.Owner.Manager())
	}
	return f.end(CountApplied)
}
