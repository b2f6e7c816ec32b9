// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/body"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Step is a request for one object, or the end of the work on the object.
type Step struct {
	// Facts contains what is known about the object, after the changes that the decision made to it.
	Facts Facts
	// State is empty if the work on the object has ended.
	State State
	Request
	Result
}

// Effect is the type of a request. It is empty if the work on the object has ended.
type Effect string

// These constants are the types of requests. All but EffectAsk and EffectFindOwners go to the API server.
const (
	EffectAsk          Effect = "ask"        // asks whether the object may be corrected
	EffectFindOwners   Effect = "findOwners" // asks whether owners of the object exist
	EffectRead         Effect = "read"
	EffectReadMetadata Effect = "readMetadata"
	EffectCreate       Effect = "create"
	EffectApply        Effect = "apply"
	EffectUpdate       Effect = "update"
	EffectPatch        Effect = "patch"
	EffectMerge        Effect = "merge" // sends a merge patch, for example for the owner label and annotations
	EffectRename       Effect = "rename"
	EffectDelete       Effect = "delete"
)

// Request is a request for one object.
type Request struct {
	Effect Effect
	// Body is the object that the request contains, and Patch is the merge patch that it contains. For EffectAsk, Body is
	// the object after its correction, or nil. For EffectRename, Rename is a JSON patch that changes the managers in
	// managedFields.
	Body   *unstructured.Unstructured
	Patch  map[string]any
	Rename []byte
	// If UID or Version is not empty, the request applies only to an object with that UID or resource version.
	UID     types.UID
	Version string
	Manager string
	// Strict means that a patch with an unknown field is rejected.
	Strict bool
	Force  bool
	DryRun bool
	Owners []ownership.Owner // for EffectFindOwners
	// placeholders are the fields of the manifest that Body does not contain unless the API server requires them.
	placeholders []body.Field
	whole        *unstructured.Unstructured // the body with all placeholders
}

// Result is the result of the work on one object.
type Result struct {
	Count  Count
	Usable bool  // the object has the desired state
	Err    error // a *Problem, or the error of a request
}

// Count is the name of the counter that the end of the work on an object increments.
type Count string

// These constants are the counters.
const (
	CountApplied   Count = "applied"
	CountUnchanged Count = "unchanged"
	CountPostponed Count = "postponed"
	CountDeleted   Count = "deleted"
)

// Response is the answer to a request.
type Response struct {
	Live *unstructured.Unstructured
	// Err is the error of the request. For EffectAsk, any error means that the object must not be corrected now.
	Err error
	// Owners contains the states of Request.Owners, in the same order.
	Owners []object.OwnerState
	// Unreadable is set if the credentials do not allow reading an object that may not exist (see Step.IsUnreadable).
	Unreadable Unreadable
}

// Unreadable determines what happens to an object that is to be deleted, that may not exist, and that the credentials
// do not allow to read.
type Unreadable string

// These constants are the values of Unreadable. By default, the work on the object fails.
const (
	UnreadableWait Unreadable = "wait"
	UnreadableSkip Unreadable = "leave"
)

// HandleResponse returns the step that follows the response to the request of the step. If a read failed, the work on
// the object ends.
func (s Step) HandleResponse(r *Rules, res Response) Step {
	f := s.Facts
	f.absent = absence.ClassifyError(f.ToAbsenceObject(), res.Err)
	f.class, f.err, f.owners = response.GetClass(f.absent, res.Err), res.Err, res.Owners
	if res.Err != nil {
		res.Live = nil
	}
	if removed := response.GetRemovedVersion(res.Err); removed != "" && removed != f.migrated {
		return migrateManagedFields(r, f, s, removed)
	}
	f.sent = s.Request
	switch s.Effect {
	case EffectRead, EffectReadMetadata:
		f.Live, f.IsCurrent = res.Live, true
		switch {
		case f.absent.IsProved():
			f.class, f.err = response.ClassOK, nil // the object was read: it does not exist
		case res.Unreadable != "":
			return handleUnreadable(f, res.Unreadable)
		case res.Err != nil:
			return f.fail(cmp.Or(f.fault, res.Err))
		}
	case EffectRename, EffectDelete:
		f.IsCurrent = false
	case EffectCreate, EffectApply, EffectUpdate, EffectPatch, EffectMerge:
		f.Answer, f.IsCurrent = res.Live, false
		f.MayExist = f.MayExist || !s.DryRun && !response.IsRejected(res.Err)
	case EffectAsk, EffectFindOwners:
	}
	if slices.ContainsFunc(s.placeholders, func(field body.Field) bool { return field.IsRequired(res.Err) }) {
		return s.withPlaceholders(f)
	}
	return handlers[s.State](r, f)
}

// ToServedVersion returns the step for the version in which the cluster serves the kind of the object, if err says that
// it does not serve the kind as requested. An object that is not desired may be requested in any version. A manifest
// can only be sent in its own version, which may have been discovered in the meantime.
func (s Step) ToServedVersion(err error) (Step, bool) {
	version := absence.GetServedVersion(err)
	switch {
	case version == "":
		return s, false
	case s.Facts.Manifest != nil:
		return s, version == s.Facts.Manifest.Ref.GVK().Version
	}
	s.Facts.APIVersion = object.FormatAPIVersion(s.Facts.Ref(), version)
	if s.Body != nil {
		s.Body = s.Body.DeepCopy()
		s.Body.SetAPIVersion(s.Facts.APIVersion)
	}
	return s, true
}

// IsFailure reports whether err is an error that the machines do not handle.
func (s Step) IsFailure(err error) bool {
	return response.GetClass(absence.ClassifyError(s.Facts.ToAbsenceObject(), err), err) == response.ClassFailed
}

// done ends the work on the object.
func (f Facts) done(count Count) Step { return Step{Facts: f, Result: Result{Count: count}} }

// fail ends the work on the object with an error. If the cluster does not serve the kind at the moment, the object
// counts as waiting.
func (f Facts) fail(err error) Step { return Step{Facts: f, Result: Result{Err: err}} }

// wait ends the work on an object that is unfinished and needs nothing but time.
func (f Facts) wait(format string, args ...any) Step {
	return f.fail(&Problem{Kind: ProblemWaiting, Reason: fmt.Sprintf(format, args...)})
}

// Wait ends the work on an object that is unfinished and needs nothing but time.
func (s Step) Wait(reason string) Step { return s.Facts.wait("%s", reason) }

// doneForgotten removes an object from the inventory because it is gone or does not belong to the item, and ends the
// work on the object.
func (f Facts) doneForgotten() Step {
	f.Gone = true
	return f.done("")
}

// doneDeleted removes an object from the inventory because it is gone, counts it as deleted, and ends the work on the
// object.
func (f Facts) doneDeleted() Step {
	f.Gone = true
	return f.done(CountDeleted)
}

// request returns a step that sends a request and is continued in a state.
func (f Facts) request(state State, request Request) Step {
	return Step{Facts: f, State: state, Request: request}
}

func (f Facts) read(state State) Step { return f.request(state, Request{Effect: EffectRead}) }

func (f Facts) readMetadata(state State) Step {
	return f.request(state, Request{Effect: EffectReadMetadata})
}

// apply sends an object by server-side apply. If the object may exist, the first request does not contain the
// placeholders of the manifest, because another program may have filled these fields. A second request contains those
// placeholders that the API server requires, because the fields are not filled.
func (f Facts) apply(r *Rules, state State, obj *unstructured.Unstructured, uid types.UID, force bool) Step {
	out := f.request(state, Request{Effect: EffectApply, Body: obj, UID: uid, Force: force, Manager: r.Owner.FieldManager()})
	if empty := body.ListPlaceholders(obj); len(empty) > 0 && (uid != "" || force) {
		out.Body, out.whole, out.placeholders = body.Without(obj, empty, nil), obj, empty
	}
	return out
}

// withPlaceholders returns the second request of Facts.apply.
func (s Step) withPlaceholders(f Facts) Step {
	out := f.request(s.State, s.Request)
	out.Body, out.placeholders = body.Without(s.whole, s.placeholders, f.err), nil
	return out
}

// applyNothing applies an object without fields, which removes all fields that the item applied earlier.
func (f Facts) applyNothing(r *Rules, state State, uid types.UID) Step {
	return f.apply(r, state, object.New(f.Ref()), uid, false)
}

// merge sends a JSON merge patch under the item's manager for patches. The patch applies only to an object with the
// given UID.
func (f Facts) merge(r *Rules, state State, uid types.UID, patch map[string]any) Step {
	patch = jsondiff.MergeOverlay(patch, map[string]any{"metadata": map[string]any{"uid": string(uid)}})
	return f.request(state, Request{Effect: EffectMerge, Patch: patch, Manager: r.Owner.PatchFieldManager()})
}

// mergeAnnotations changes annotations of an object. A value of nil removes an annotation.
func (f Facts) mergeAnnotations(r *Rules, state State, uid types.UID, annotations map[string]any) Step {
	return f.merge(r, state, uid, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// remove asks the API server to delete the object with the UID of the inventory. If version is not empty, the object
// must also have that resource version.
func (f Facts) remove(state State, version string) Step {
	return f.request(state, Request{Effect: EffectDelete, UID: f.UID, Version: version})
}

// prepareDeletion sends AnnotateBeforeDelete and PatchBeforeDelete.
func (f Facts) prepareDeletion(r *Rules, state State) Step {
	f.prepared = true
	annotations := map[string]any{}
	for key, value := range f.AnnotateBeforeDelete {
		annotations[key] = value
	}
	patch := jsondiff.MergeOverlay(f.PatchBeforeDelete, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	return f.merge(r, state, f.UID, patch)
}

// updateManagedFields changes the managedFields entries of earlier owners. It replaces the field manager in these
// entries by the manager of this item. The next apply then removes the fields that its manifest does not contain. It
// returns false if there are no such entries.
func (f Facts) updateManagedFields(r *Rules, state State, updaters []string) (Step, bool) {
	rename, err := ownership.NewTransferPatch(r.withoutFormer(f), r.Owner, updaters...)
	if err != nil {
		return f.fail(err), true
	}
	return f.request(state, Request{Effect: EffectRename, Rename: rename}), rename != nil
}

// handleFailedRename returns the last step if a patch of managedFields failed. It returns false if the patch succeeded.
func (f Facts) handleFailedRename() (Step, bool) {
	switch {
	case f.class == response.ClassOK:
		return Step{}, false
	case f.isConflict() || apierrors.IsNotFound(f.err):
		return f.wait("changed while the managers of its fields were changed"), true
	}
	return f.fail(f.err), true
}

// findOwners asks which of the given owners exist. It returns false if none of them can be found.
func (f Facts) findOwners(r *Rules, state State, owners []ownership.Owner) (Step, bool) {
	return f.request(state, Request{Effect: EffectFindOwners, Owners: owners}), slices.ContainsFunc(owners, r.CanFind)
}
