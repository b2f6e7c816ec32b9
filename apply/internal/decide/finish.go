// SPDX-License-Identifier: Apache-2.0

package decide

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// handleWriting is called after the last write of an object. If an object with the strategy OnDelete already exists,
// the object is read.
func handleWriting(r *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassExists && f.sent.Effect == EffectCreate && f.Manifest.Strategy.OnlyCreates && !f.Manifest.IsCreateOnly:
		return f.read(writeReading)
	case f.class != response.ClassOK:
		return f.handleFailure()
	}
	f.recordGain()
	return f.handleSuccess(r)
}

// handleFailure ends the work on the object with the error of the last write. If the error is about an immutable field
// and the object was not read yet, handleFailure reads the object first, so that the error can name the field.
func (f Facts) handleFailure() Step {
	if f.class != response.ClassImmutable || f.Live != nil {
		return f.fail(f.err)
	}
	return f.readRejected("")
}

// handleSuccess ends the work on the object after a successful write.
func (f Facts) handleSuccess(r *Rules) Step {
	m, live := f.Manifest, f.Answer
	f.Final = live
	if live.GetDeletionTimestamp() != nil {
		f.Hash, f.Fingerprint = "", ""
		return f.waitUntilGone(deletion.ListFinalizers(live))
	}
	if ownership.IsReleased(live) && !r.DryRun {
		return f.mergeAnnotations(r, writeWriting, live.GetUID(), map[string]any{ownership.AnnotationPolicy: nil})
	}
	before := f.Entry
	f.UID, f.Hash, f.Fingerprint, f.StoredHash, f.Version = live.GetUID(), m.Hash, "", m.computeStoredHash(live), live.GetResourceVersion()
	if m.Strategy.IsTracked && !m.IsCreateOnly {
		f.Fingerprint = ownership.ComputeFingerprint(live, r.Owner.FieldManager())
	}
	f.Changed = f.Fingerprint == "" || f.Fingerprint != before.Fingerprint || f.Hash != before.Hash
	f.PatchDue, f.Deleting = len(m.PatchAfterDeployment) > 0, false
	return f.doneDesired(CountApplied)
}

// doneDesired ends the work on an object that has the desired state. If later stages cannot use the object yet, it
// counts as waiting.
func (f Facts) doneDesired(count Count) Step {
	out := Result{Count: count, Usable: true}
	kind := f.Manifest.Ref.GVK().GroupKind()
	phase, _, _ := unstructured.NestedString(f.Final.Object, "status", "phase")
	switch {
	case object.IsDefinition(kind) && !object.HasCondition(f.Final, "Established"):
		out.Err = &Problem{Kind: ProblemWaiting, Reason: "is not established yet"}
	case object.IsNamespace(kind) && phase == string(corev1.NamespaceTerminating):
		out.Err = &Problem{Kind: ProblemWaiting, Reason: deletion.Format(f.Final)}
	}
	f.Pending, f.Finish = out.Err != nil, object.GetFinish(f.Final)
	return Step{Facts: f, Result: out}
}

// doneUnchanged ends the work on an object that was read, without a write.
func (f Facts) doneUnchanged() Step {
	f.Final, f.Deleting, f.Version = f.Live, false, f.Live.GetResourceVersion()
	return f.doneDesired(CountUnchanged)
}

// doneUntouched ends the work on an object that was read, without changing it, and emits an event.
func (f Facts) doneUntouched(message string) Step {
	f.Final = f.Live
	f.recordEvent(object.ReasonLeftAlone, message)
	return f.done("")
}

// waitUntilGone ends the work on an object that must be gone before it can be created again.
func (f Facts) waitUntilGone(finalizers []string) Step {
	return f.wait(isDeleted, deletion.FormatFinalizers(finalizers))
}

// PatchAfterDeployment returns the step that sends Manifest.PatchAfterDeployment.
func PatchAfterDeployment(r *Rules, f Facts) Step {
	out := f.merge(r, writePatching, f.UID, f.Manifest.PatchAfterDeployment)
	out.Strict = true
	return out
}

func handlePatching(r *Rules, f Facts) Step {
	switch {
	case f.absent == absence.MeaningFinished:
		f.Finish = object.FinishGone
		return f.done(CountUnchanged)
	case f.class != response.ClassOK:
		return f.fail(f.err)
	}
	f.Version = f.Answer.GetResourceVersion()
	if f.PatchDue = false; f.Fingerprint != "" {
		f.Fingerprint = ownership.ComputeFingerprint(f.Answer, r.Owner.FieldManager())
	}
	return f.done(CountApplied)
}
