// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// These constants are the reasons for waiting if an object must be deleted before it can be created again. The argument
// names the finalizers that prevent the deletion.
const (
	isDeleted  = "is being deleted%s, and is created again when it is gone"
	isReplaced = "is replaced%s, because an immutable field changed"
)

// recreateObject writes an object with the strategy Recreate. Before the object is deleted, a dry run must show that an
// apply would change it. Therefore, an object is not deleted if the API server rejects its new manifest.
func recreateObject(r *Rules, f Facts) Step {
	switch {
	case f.UID == "":
		return claimObject(r, f)
	case !f.IsCurrent:
		return f.read(writeReading)
	}
	live := f.Live
	switch {
	case live == nil || live.GetUID() != f.UID:
		f.forget()
		return claimObject(r, f)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.ListFinalizers(live))
	case f.Hash == "":
		return claimObject(r, f)
	case f.isAsWanted(ownership.ComputeFingerprint(live, r.Owner.FieldManager())):
		return f.doneUnchanged()
	case r.isSharedNow(f):
		return shareObject(r, f)
	}
	if _, problem := r.canClaim(f); problem != nil {
		return rejectRival(r, f, problem)
	}
	if !r.isOwn(live, f.Entry) {
		return claimObject(r, f)
	}
	out := f.apply(r, writeTrying, f.getBody(), live.GetUID(), true)
	out.DryRun = true
	return out
}

// handleTrying is called after the dry run of an apply. It deletes the object if the apply would change more than the
// owner label and the owner annotations, or would change an immutable field. It also deletes the object if a webhook
// does not support dry runs, because the effect of the apply is unknown then.
func handleTrying(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassImmutable, response.IsDryRunRejected(f.err):
	case f.class == response.ClassMismatch:
		return f.wait("changed while it was checked")
	case f.class != response.ClassOK:
		return f.handleFailure()
	case !isDifferent(f.Live, f.Answer) && r.DryRun:
		return f.handleSuccess(r)
	case !isDifferent(f.Live, f.Answer):
		return applyObject(r, f)
	}
	if r.mustAsk(f) {
		return f.request(writeAsking, Request{Effect: EffectAsk})
	}
	return replaceObject(r, f, isDeleted)
}

// replaceUnknown is called after the API server has rejected the change of an immutable field and the object has been
// read. It deletes the object if the object belongs to the item, even if the inventory does not contain the object's
// UID.
func replaceUnknown(r *Rules, f Facts) Step {
	live := f.Live
	switch {
	case live == nil:
		return f.wait("was deleted in the meantime")
	case !r.isOwn(live, f.Entry):
		return f.fail(f.fault)
	case live.GetDeletionTimestamp() != nil:
		return f.waitUntilGone(deletion.ListFinalizers(live))
	}
	if _, problem := r.canClaim(f); problem != nil {
		return f.fail(problem)
	}
	f.UID = live.GetUID()
	return replaceObject(r, f, isDeleted)
}

// replaceObject deletes an object so that a later call can create it again. The object must have the UID that the
// inventory records. The argument is the reason for waiting afterwards.
func replaceObject(r *Rules, f Facts, reason string) Step {
	f.reason = reason
	if f.needsPreparation() {
		return f.prepareDeletion(r, writePreparing)
	}
	return deleteReplaced(r, f)
}

func handlePreparing(r *Rules, f Facts) Step {
	if f.class != response.ClassOK {
		return handleReplacing(r, f)
	}
	return deleteReplaced(r, f)
}

// deleteReplaced deletes an object. If items may share objects of this kind, deleteReplaced reads the object first.
func deleteReplaced(r *Rules, f Facts) Step {
	switch {
	case !r.isShared(f.Manifest.Ref):
		return f.remove(writeReplacing, "")
	case !f.IsCurrent:
		return f.read(writeChecking)
	}
	return handleChecking(r, f)
}

// handleChecking is called after reading an object that is deleted in order to be created again, and that other items
// may own as well.
func handleChecking(r *Rules, f Facts) Step {
	if f.Live == nil {
		return f.remove(writeReplacing, "")
	}
	if others := r.listOtherOwners(f.Live); len(others) > 0 {
		reason := fmt.Sprintf("cannot be deleted and created again, because deploy item %s also owns it", others[0])
		return f.fail(&Problem{Kind: ProblemInvalid, Reason: reason})
	}
	return f.remove(writeReplacing, f.Live.GetResourceVersion())
}

func handleReplacing(_ *Rules, f Facts) Step {
	switch {
	case f.isConflict():
		return f.wait("changed while it was deleted")
	case f.class != response.ClassOK && f.class != response.ClassGone:
		return f.fail(f.err)
	}
	f.Hash, f.Fingerprint, f.Changed = "", "", true
	return f.wait(f.reason, deletion.FormatFinalizers(deletion.ListFinalizers(f.Live)))
}

// isDifferent reports whether two versions of an object differ. It ignores reserved labels and annotations (see
// ownership.IsReserved), and the fields that the API server maintains itself.
func isDifferent(a, b *unstructured.Unstructured) bool {
	return len(fields.Diff(withoutReserved(a), withoutReserved(b))) > 0
}

// withoutReserved returns a copy of the object without reserved labels and annotations (see ownership.IsReserved).
func withoutReserved(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy().Object
	metadata, _ := out["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, isMap := metadata[field].(map[string]any)
		for key := range values {
			if ownership.IsReserved(key) {
				delete(values, key)
			}
		}
		if isMap && len(values) == 0 {
			delete(metadata, field)
		}
	}
	return out
}
