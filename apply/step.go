// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/observe"
)

// maxSteps limits the number of steps for one object in one call. An object needs more steps only if other writers
// change it constantly. It then counts as waiting.
const maxSteps = 11

// A decision is a function that returns the next step for an object. It is called after a step and decides on the basis
// of the information that is available by then. Decisions are pure.
type decision func(rules, known) step

// effect is the action that a step performs. An empty effect ends the work on the object.
type effect string

const (
	effectAsk          effect = "ask"        // asks Options.MayHeal
	effectFindOwners   effect = "findOwners" // calls Options.FindOwner
	effectRead         effect = "read"
	effectReadMetadata effect = "readMetadata"
	effectCreate       effect = "create"
	effectApply        effect = "apply"
	effectUpdate       effect = "update"
	effectPatch        effect = "patch"
	effectMerge        effect = "merge" // sends a merge patch, for example for the owner label and annotations
	effectTakeOver     effect = "takeOver"
	effectDelete       effect = "delete"
)

// step describes what to do next with one object.
type step struct {
	// known contains the information about the object, after the changes that the decision made to it.
	known  known
	effect effect
	// next is the decision that is called after the effect.
	next decision

	// body is the object that the effect sends, and patch is the merge patch that the effect sends. If uid or version
	// is not empty, the request applies only to an object with that UID or resource version.
	body    *unstructured.Unstructured
	patch   map[string]any
	rename  []byte // a JSON patch that changes managedFields
	uid     types.UID
	version string
	manager string
	strict  bool // a merge patch with an unknown field is rejected
	force   bool
	dry     bool
	drift   *Drift
	owners  *owners

	// The following fields are set only in the last step for an object.
	count  count
	usable bool  // the object has the desired state
	err    error // the error of the object; its class is Wait if the object is unfinished
}

// count is the name of the counter in the Report that a step increments.
type count string

const (
	countApplied   count = "applied"
	countUnchanged count = "unchanged"
	countPostponed count = "postponed"
	countDeleted   count = "deleted"
)

// known contains the information that the engine has about one object at a certain time during a call.
type known struct {
	entryState

	want *object        // nil if the object is to be deleted
	seen *observe.State // the object as a watch last reported it, or nil
	// wasApplied means that the object was already applied in this run. The object then needs no further request,
	// unless it is gone or its ownership key shows that another writer changed it.
	wasApplied bool
	// removeFinalizers means that the finalizers of the object are removed while it is being deleted.
	removeFinalizers bool

	// live is the object as it was last read. It is nil if the object does not exist. isCurrent means that no write
	// followed the read.
	live      *unstructured.Unstructured
	isCurrent bool
	// answer is the object in the answer to the last write.
	answer *unstructured.Unstructured
	result result
	err    error // the error of the last step
	// absent is what the error of the last step means for the existence of the object. For a read, it tells an object
	// that is gone from one that finished its work.
	absent absence.Meaning

	former   []ownership.Owner // owners of the object that do not exist any more or have released it
	asked    bool              // Options.FindOwner was called for the owners of a shared object
	ignored  bool              // the object is to be marked as released, because its policy is Ignore now
	mayExist bool              // a write of this call succeeded, or may have had an effect although it failed
	written  bool              // the object belonged to the item before the first apply of this call
	prepared bool              // AnnotateBeforeDelete and PatchBeforeDelete were sent
	migrated string            // the API version that this call has last replaced in managedFields
	fault    error             // the error of an earlier step; it is returned unless reading the object shows how to continue
	outcome  *unstructured.Unstructured
	events   []Event
}

// after returns the step that follows s. The arguments live and err are the result of s. If a read failed, after ends
// the work on the object.
func (s step) after(r rules, live *unstructured.Unstructured, err error) step {
	k := s.known
	k.absent = absence.Of(k.asAbsent(), err)
	k.result, k.err = resultOf(k.absent, err), err
	if err != nil {
		live = nil
	}
	if removed := removedVersionIn(err); removed != "" && removed != k.migrated {
		return s.migrate(r, k, removed)
	}
	unreadable, isUnreadable := errors.AsType[*unreadableError](err)
	switch s.effect {
	case effectAsk:
		if err != nil {
			k.result = resultDenied
		}
	case effectRead, effectReadMetadata:
		k.live, k.isCurrent = live, true
		switch {
		case k.absent.IsProved():
			k.result, k.err = resultOK, nil // the object was read: it does not exist
		case isUnreadable:
			return k.leaveUnreadable(unreadable.leave)
		case err != nil:
			return k.fail(cmp.Or(k.fault, err))
		}
	case effectFindOwners: // the answer is in step.owners
	case effectTakeOver, effectDelete:
		k.isCurrent = false
	case effectCreate, effectApply, effectUpdate, effectPatch, effectMerge:
		k.answer, k.isCurrent = live, false
		k.mayExist = k.mayExist || !s.dry && !isRejected(err)
	}
	return s.next(r, k)
}

// inServedVersion returns the step for the version in which the cluster serves the kind of the object, if err says that
// it does not serve the kind as requested. An object that is not desired may be requested in any version. A manifest can
// only be sent in its own version, which may have been discovered in the meantime.
func (s step) inServedVersion(err error) (step, bool) {
	version := absence.ServedVersion(err)
	switch {
	case version == "":
		return s, false
	case s.known.want != nil:
		return s, version == s.known.want.ref.GVK().Version
	}
	s.known.APIVersion = s.known.Ref().in(version)
	if s.body != nil {
		s.body = s.body.DeepCopy()
		s.body.SetAPIVersion(s.known.APIVersion)
	}
	return s, true
}

// asAbsent describes the object for the decision about what its absence means.
func (k known) asAbsent() absence.Object {
	ref := k.Ref()
	return absence.Object{Kind: ref.GVK().GroupKind(), Name: ref.Name, Finished: k.Finish != ""}
}

func (k known) read(next decision) step { return step{known: k, effect: effectRead, next: next} }

// look reads the object unless its current state is already known.
func (k known) look(r rules, next decision) step {
	if k.isCurrent {
		return next(r, k)
	}
	return k.read(next)
}

func (k known) readMetadata(next decision) step {
	return step{known: k, effect: effectReadMetadata, next: next}
}

func (k known) create(r rules, next decision) step {
	return step{known: k, effect: effectCreate, next: next, body: k.want.Object, manager: r.owner.Manager()}
}

// apply sends an object by server-side apply. If the object may exist, the first request does not contain the
// placeholders of the manifest, because another program may have filled these fields. A second request contains those
// placeholders that the API server requires, because the fields are not filled.
func (k known) apply(r rules, body *unstructured.Unstructured, uid types.UID, force bool, next decision) step {
	out := step{known: k, effect: effectApply, next: next, body: body, uid: uid, force: force, manager: r.owner.Manager()}
	empty := placeholders(body)
	if len(empty) == 0 || uid == "" && !force {
		return out
	}
	second := out
	out.body = without(body, empty, nil)
	out.next = func(r rules, k known) step {
		if !slices.ContainsFunc(empty, func(field filledField) bool { return isRequired(field.path, k.err) }) {
			return next(r, k)
		}
		second.known, second.body = k, without(body, empty, k.err)
		return second
	}
	return out
}

// merge sends a JSON merge patch under the item's manager for patches. The patch applies only to an object with the
// given UID.
func (k known) merge(r rules, uid types.UID, patch map[string]any, next decision) step {
	patch = jsondiff.Overlay(patch, map[string]any{"metadata": map[string]any{"uid": string(uid)}})
	return step{known: k, effect: effectMerge, next: next, patch: patch, manager: r.owner.PatchManager()}
}

// applyNothing applies an object without fields, which removes all fields that the item applied earlier.
func (k known) applyNothing(r rules, uid types.UID, next decision) step {
	return k.apply(r, k.Ref().empty(), uid, false, next)
}

// ask lets Options.MayHeal decide whether the object is corrected now. The first argument is the object that was read,
// and the second is its state after the correction.
func (k known) ask(live, after *unstructured.Unstructured, next decision) step {
	drift := Drift{Ref: k.want.ref, Resource: k.want.kind.resource, UID: k.UID, Live: live, Fields: driftFields(live, after)}
	return step{known: k, effect: effectAsk, drift: &drift, next: func(r rules, k known) step {
		if k.result == resultDenied {
			k.outcome = live
			return step{known: k, count: countPostponed}
		}
		return next(r, k)
	}}
}

func (k known) wait(format string, args ...any) step {
	return step{known: k, err: waiting(k.Ref(), format, args...)}
}

// fail ends the work on the object with an error. If the cluster does not serve the kind at the moment, the object
// counts as waiting (see classify).
func (k known) fail(err error) step { return step{known: k, err: err} }

// failed ends the work on the object with the error of the last step. If the error is about an immutable field and the
// object was not read yet, the method reads the object first, so that the error can name the field.
func (k known) failed() step {
	if k.result != resultImmutable || k.live != nil {
		return k.fail(k.err)
	}
	k.fault = k.err
	return k.read(func(_ rules, k known) step { return k.fail(k.fault) })
}

// leaveAlone ends the work on an object that was read, without changing it, and emits an event.
func (k known) leaveAlone(message string) step {
	k.outcome = k.live
	k.note(ReasonLeftAlone, message)
	return step{known: k}
}

// note stores an event. The event is emitted after the last step.
func (k *known) note(reason, message string) {
	k.events = append(k.events, Event{Ref: k.Ref(), Reason: reason, Message: message})
}

// unchanged ends the work on an object that was read, without a write.
func (k known) unchanged() step {
	k.outcome, k.Deleting, k.version = k.live, false, k.live.GetResourceVersion()
	return k.finish(countUnchanged)
}

// bodyFor returns the manifest that the item writes. If the object is adopted, it contains the annotation
// AnnotationAdopted.
func bodyFor(k known) *unstructured.Unstructured {
	if k.Adopted {
		return markedAdopted(k.want.Object)
	}
	return k.want.Object
}

// inherit records that the item takes over an object from an earlier item, or shares it with other items. If these items
// adopted the object, it also counts as adopted by this item. The adoption policy determines this for an object whose
// former owners are not earlier items with the same name.
func inherit(r rules, k known, live *unstructured.Unstructured) known {
	k.Adopted = k.Adopted || isMarkedAdopted(live) || len(k.former) > 0 && r.adoption(k.want) != AdoptAlways
	return k
}

// landed ends the work on the object after a successful write.
func (k known) landed(r rules) step {
	o, live := k.want, k.answer
	k.outcome = live
	if live.GetDeletionTimestamp() != nil {
		k.Hash, k.Key = "", ""
		return k.waitUntilGone(deletion.Finalizers(live))
	}
	if ownership.IsReleased(live) && !r.dry {
		return decideUnrelease(r, k)
	}
	before := k.Entry
	k.UID, k.Hash, k.Key, k.Norm, k.version = live.GetUID(), o.hash, "", o.normOf(live), live.GetResourceVersion()
	if o.isTracked() && o.Policy != Immutable {
		k.Key = ownership.KeyOf(live, r.owner.Manager())
	}
	k.changed = k.Key == "" || k.Key != before.Key || k.Hash != before.Hash
	k.PatchDue, k.Deleting = len(o.PatchAfterDeployment) > 0, false
	return k.finish(countApplied)
}

// finish ends the work on an object that has the desired state. If later stages cannot use the object yet, it counts as
// waiting.
func (k known) finish(count count) step {
	out := step{count: count, usable: true}
	stage := stageOf(k.want.ref.GVK().GroupKind(), k.want.kind.namespaced)
	phase, _, _ := unstructured.NestedString(k.outcome.Object, "status", "phase")
	switch {
	case stage == stageDefinitions && !isEstablished(k.outcome):
		out.err = waiting(k.Ref(), "is not established yet")
	case stage == stageNamespaces && phase == string(corev1.NamespaceTerminating):
		out.err = waiting(k.Ref(), "%s", deletion.Text(k.outcome))
	}
	k.Pending, k.Finish = out.err != nil, FinishOf(k.outcome)
	out.known = k
	return out
}

// leave removes an object from the inventory because it is gone or does not belong to the item, and ends the work on
// the object.
func (k known) leave() step {
	k.gone = true
	return step{known: k}
}

// deleted removes an object from the inventory because it is gone, counts it as deleted, and ends the work on the
// object.
func (k known) deleted() step {
	k.gone = true
	return step{known: k, count: countDeleted}
}

// isGoing is the reason for waiting if an object must be deleted before it can be created again. The argument names the
// finalizers that prevent the deletion.
const isGoing = "is being deleted%s, and is created again when it is gone"

// waitUntilGone ends the work on an object that must be gone before it can be created again.
func (k known) waitUntilGone(finalizers []string) step {
	return k.wait(isGoing, deletion.Held(finalizers))
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] == "Established" {
			return condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
