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
