// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
	"github.com/deployerkit/deployerkit/observe"
)

// run is one call of the engine, or one Session. For each object, it decides on a step, takes the step and records the
// result. It repeats this until nothing is left to do for the object.
type run struct {
	options *Options
	rules   *decide.Rules
	cluster cluster
	kinds   *kinds
	objects *tracker
	results *results
	hide    *redact.Redactor
	// namespaces explains why namespaces that are being deleted still exist.
	namespaces *namespaceReasons
}

// apply applies one object of the inventory. The returned error is the same as ApplyResult.Err.
func (r *run) apply(ctx context.Context, o *desiredObject) (ApplyResult, *Error) {
	out := ApplyResult{Ref: o.ref}
	switch {
	case o.Policy == PolicyIgnore:
		failed := r.releaseIgnored(ctx, o)
		if failed != nil {
			out.Err = failed
		}
		return out, failed
	case o.isUntouched():
		return out, nil
	case o.unserved != nil:
		r.results.recordError(o.ref, o.unserved)
		out.WaitMessage, out.NotServed = o.unserved.Message, true
		return out, nil
	}
	end := r.processObject(ctx, o.ref, decide.Facts{Manifest: o.manifest(r.options)}, decide.Write)
	failed := r.recordResult(ctx, end)
	if failed != nil {
		if o.Hint != "" {
			failed.Message += ": " + o.Hint
		}
		out.Err = failed
	}
	waits := r.results.getWaiting(o.ref)
	out.Live, out.Changed, out.WaitMessage, out.NotServed = end.Facts.Final, end.Facts.Changed, waits.Message, waits.NotServed
	return out, failed
}

// processObject takes the steps for one object of the inventory, beginning with the result of first, and returns the
// last step.
func (r *run) processObject(ctx context.Context, ref Ref, f decide.Facts, first func(*decide.Rules, decide.Facts) decide.Step) (end decide.Step) {
	r.objects.updateEntry(ref, func(s *object.Record) {
		f.Record = *s
		if m := f.Manifest; m != nil {
			f.Gone, f.Changed, f.Resource = false, false, m.Resource
			f.WasApplied = !m.Strategy.OnlyCreates && f.Hash == m.Hash && r.options.Applied.has(toID(ref), state{f.UID, f.Hash})
		}
		f.Watched = r.findWatched(f.Record)
		end = r.runSteps(ctx, first(r.rules, f))
		*s = getFinalRecord(end)
	})
	return end
}

// getFinalRecord returns the record of an object after the last step. If the API server rejected the first write of the
// object, the item has not created the object, so the entry is removed from the inventory. Otherwise the item would
// have to prove later that the object does not exist, which it may not be allowed to.
func getFinalRecord(end decide.Step) object.Record {
	f := end.Facts
	out := f.Record
	rejected := response.IsRejected(end.Err) && !apierrors.HasStatusCause(end.Err, corev1.NamespaceTerminatingCause)
	if out.IsNew && out.UID == "" && !f.MayExist && f.Manifest != nil && rejected {
		out.Gone = true
	}
	out.IsNew = out.IsNew && !f.MayExist
	return out
}

// findWatched returns an object as a watch last reported it, or nil if no watch has reported the object.
func (r *run) findWatched(s object.Record) *observe.State {
	if r.options.Watched == nil || s.UID == "" || s.Deleting {
		return nil
	}
	resource := r.kinds.findResource(s)
	if resource.Empty() {
		return nil
	}
	if seen, known := r.options.Watched.Get(resource, s.Ref().Key()); known {
		return &seen
	}
	return nil
}

// maxSteps limits the number of steps for one object in one call. An object needs more steps only if other writers
// change it constantly. It then counts as waiting.
const maxSteps = 11

// runSteps takes the steps for one object, beginning with s, and returns the last step. For a plan, the last step may
// be the step that would create or delete the object.
func (r *run) runSteps(ctx context.Context, s decide.Step) decide.Step {
	for range maxSteps {
		if s.Effect == "" || r.rules.DryRun && (s.Effect == decide.EffectCreate || s.Effect == decide.EffectDelete) {
			return s
		}
		res := r.do(ctx, s)
		if moved, ok := s.ToServedVersion(res.Err); ok {
			s = moved
			res = r.do(ctx, s)
		}
		s = s.HandleResponse(r.rules, res)
	}
	if s.Effect == "" || r.rules.DryRun {
		return s
	}
	return s.Wait("changes constantly")
}

// errDenied is the result of a question if Options.CanCorrect does not allow the correction.
var errDenied = errors.New("Options.MayHeal does not allow the correction now")

// do takes one step. For a plan, do sends writes as dry runs. It skips requests that do not affect the plan: merge
// patches, changes of field managers, and applies to objects that are no longer desired.
func (r *run) do(ctx context.Context, s decide.Step) decide.Response {
	f := s.Facts
	switch {
	case s.Effect == decide.EffectAsk && r.options.CanCorrect(r.newDrift(s)):
		return decide.Response{}
	case s.Effect == decide.EffectAsk:
		return decide.Response{Err: errDenied}
	case s.Effect == decide.EffectFindOwners:
		return decide.Response{Owners: r.findOwners(ctx, s.Owners)}
	case r.rules.DryRun && (s.Effect == decide.EffectMerge || s.Effect == decide.EffectRename || s.Effect == decide.EffectApply && f.Manifest == nil):
		return decide.Response{Live: cmp.Or(f.Answer, f.Live)}
	}
	s.DryRun = s.DryRun || r.rules.DryRun
	live, err := r.cluster.do(ctx, s)
	res := decide.Response{Live: live, Err: err}
	if r.options.SkipUnreadable != nil && s.IsUnreadable(err) {
		res.Unreadable = decide.UnreadableWait
		if r.options.SkipUnreadable(f.Ref()) {
			res.Unreadable = decide.UnreadableSkip
		}
	}
	if s.Effect == decide.EffectDelete && s.IsFailure(err) && !isKindError(err) {
		res.Err = r.newDeletionError(f.Ref(), err)
	}
	return res
}

// newDeletionError classifies the error of a deletion. If an admission plugin denies a deletion, the class of the error
// is not ClassPermanent, whatever status code the answer has, because the same request may succeed later.
func (r *run) newDeletionError(ref Ref, err error) *Error {
	denied := newRequestError(ref, err, r.hide)
	if denied.Class == ClassPermanent {
		denied.Class = ClassRetry
	}
	return denied
}

// newDrift returns the question for Options.CanCorrect.
func (r *run) newDrift(s decide.Step) DriftedObject {
	f := s.Facts
	return DriftedObject{Ref: f.Manifest.Ref, Resource: f.Manifest.Resource, UID: f.UID, Live: f.Live, Fields: listDriftFields(f.Live, s.Body)}
}

// maxOwners limits the owners of one object whose existence is checked. All other owners count as existing.
const maxOwners = 20

// findOwners calls Options.FindOwner for the owners of an object.
func (r *run) findOwners(ctx context.Context, owners []ownership.Owner) []OwnerState {
	out := make([]OwnerState, len(owners))
	for i, owner := range owners[:min(len(owners), maxOwners)] {
		if r.rules.CanFind(owner) {
			out[i] = r.options.FindOwner(ctx, owner)
		}
	}
	return out
}

// release lets go of an object that stays in the cluster (see decide.Release).
func (r *run) release(ctx context.Context, ref Ref, f decide.Facts) *Error {
	return r.recordResult(ctx, r.processObject(ctx, ref, f, decide.Release))
}

// releaseIgnored releases an object whose policy is Ignore now, if the item managed the object before.
func (r *run) releaseIgnored(ctx context.Context, o *desiredObject) *Error {
	if r.objects.get(o.ref).UID == "" {
		return nil
	}
	return r.release(ctx, o.ref, decide.Facts{Ignored: true})
}

// recordResult processes the last step for an object: it emits the events, classifies the error and records the result.
// It returns the classified error, or nil if there is no error or the object is only unfinished.
func (r *run) recordResult(ctx context.Context, end decide.Step) *Error {
	f := end.Facts
	for _, event := range f.Events {
		event.Message = cleanText(r.hide, event.Message)
		if r.options.Events != nil {
			r.options.Events(event)
		}
	}
	if end.Usable {
		r.options.Applied.add(toID(f.Ref()), state{f.UID, f.Hash})
		if object.IsDefinition(f.Ref().GVK().GroupKind()) && !f.Pending {
			meta.MaybeResetRESTMapper(r.kinds.mapper) // the mapper may have cached that the kind does not exist
		}
	}
	if apierrors.HasStatusCause(end.Err, corev1.NamespaceTerminatingCause) {
		end.Err = newWaitingError(f.Ref(), "the namespace %s %s", f.Namespace, r.namespaces.describe(ctx, r.cluster, f.Namespace))
	}
	switch {
	case f.Manifest == nil:
	case response.IsImmutable(end.Err):
		end.Err = newImmutableError(f.Manifest, f.Live, end.Err, r.hide)
	default:
		if one := newDefaultedError(f.Manifest, end.Err, r.hide); one != nil {
			end.Err = one
		}
	}
	return r.results.record(end)
}

func (r *run) result(ctx context.Context) (Inventory, Report, error) {
	err := r.results.err(ctx)
	out := r.results.toReport()
	out.Owned = r.objects.listOwned(nil)
	return r.objects.inventory(), out, err
}

// watch calls Options.StartWatch for the resources of a stage.
func (r *run) watch(ctx context.Context, objects []*desiredObject) {
	if r.options.StartWatch == nil {
		return
	}
	places := map[schema.GroupVersionResource][]string{}
	for _, o := range objects {
		if o.isWatched() && !o.kind.resource.Empty() {
			places[o.kind.resource] = append(places[o.kind.resource], o.ref.Namespace)
		}
	}
	resources := slices.SortedFunc(maps.Keys(places), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	for _, resource := range resources {
		namespaces := sets.New(places[resource]...).Delete("")
		r.options.StartWatch(ctx, resource, slices.Sorted(maps.Keys(namespaces)))
	}
}
