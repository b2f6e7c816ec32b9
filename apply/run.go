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
	namespaces *namespaces
}

// apply applies one object of the inventory. The returned error is the same as Outcome.Err.
func (r *run) apply(ctx context.Context, o *desiredObject) (Outcome, *Error) {
	out := Outcome{Ref: o.ref}
	switch {
	case o.Policy == Ignore:
		failed := r.ignore(ctx, o)
		if failed != nil {
			out.Err = failed
		}
		return out, failed
	case o.isUntouched():
		return out, nil
	case o.unserved != nil:
		r.results.note(o.ref, o.unserved)
		out.Waiting, out.NotServed = o.unserved.Reason, true
		return out, nil
	}
	end := r.processObject(ctx, o.ref, decide.Facts{Want: o.manifest(r.options)}, decide.Write)
	failed := r.recordResult(ctx, end)
	if failed != nil {
		if o.Hint != "" {
			failed.Reason += ": " + o.Hint
		}
		out.Err = failed
	}
	waits := r.results.waitsFor(o.ref)
	out.Live, out.Changed, out.Waiting, out.NotServed = end.Facts.Outcome, end.Facts.Changed, waits.Reason, waits.NotServed
	return out, failed
}

// processObject takes the steps for one object of the inventory, beginning with the result of first, and returns the last step.
func (r *run) processObject(ctx context.Context, ref Ref, f decide.Facts, first func(*decide.Rules, decide.Facts) decide.Step) (end decide.Step) {
	r.objects.withEntry(ref, func(s *object.Record) {
		f.Record = *s
		if m := f.Want; m != nil {
			f.Gone, f.Changed, f.Resource = false, false, m.Resource
			f.WasApplied = !m.Strategy.OnlyCreates && f.Hash == m.Hash && r.options.Applied.has(toID(ref), state{f.UID, f.Hash})
		}
		f.Seen = r.findSeen(f.Record)
		end = r.takeSteps(ctx, first(r.rules, f))
		*s = finalRecord(end)
	})
	return end
}

// finalRecord returns the record of an object after the last step. If the API server rejected the first write of the
// object, the item has not created the object, so the entry is removed from the inventory. Otherwise the item would have
// to prove later that the object does not exist, which it may not be allowed to.
func finalRecord(end decide.Step) object.Record {
	f := end.Facts
	out := f.Record
	rejected := response.IsRejected(end.Err) && !apierrors.HasStatusCause(end.Err, corev1.NamespaceTerminatingCause)
	if out.IsNew && out.UID == "" && !f.MayExist && f.Want != nil && rejected {
		out.Gone = true
	}
	out.IsNew = out.IsNew && !f.MayExist
	return out
}

// findSeen returns an object as a watch last reported it, or nil if no watch has reported the object.
func (r *run) findSeen(s object.Record) *observe.State {
	if r.options.Seen == nil || s.UID == "" || s.Deleting {
		return nil
	}
	resource := r.kinds.resourceOf(s)
	if resource.Empty() {
		return nil
	}
	if seen, known := r.options.Seen.Get(resource, s.Ref().Key()); known {
		return &seen
	}
	return nil
}

// maxSteps limits the number of steps for one object in one call. An object needs more steps only if other writers
// change it constantly. It then counts as waiting.
const maxSteps = 11

// takeSteps takes the steps for one object, beginning with s, and returns the last step. For a plan, the last step may be
// the step that would create or delete the object.
func (r *run) takeSteps(ctx context.Context, s decide.Step) decide.Step {
	for range maxSteps {
		if s.Effect == "" || r.rules.DryRun && (s.Effect == decide.EffectCreate || s.Effect == decide.EffectDelete) {
			return s
		}
		res := r.do(ctx, s)
		if moved, ok := s.InServedVersion(res.Err); ok {
			s = moved
			res = r.do(ctx, s)
		}
		s = s.After(r.rules, res)
	}
	if s.Effect == "" || r.rules.DryRun {
		return s
	}
	return s.Wait("changes constantly")
}

// errDenied is the result of a question if Options.MayHeal does not allow the correction.
var errDenied = errors.New("Options.MayHeal does not allow the correction now")

// do takes one step. For a plan, do sends writes as dry runs. It skips requests that do not affect the plan: merge
// patches, changes of field managers, and applies to objects that are no longer desired.
func (r *run) do(ctx context.Context, s decide.Step) decide.Response {
	f := s.Facts
	switch {
	case s.Effect == decide.EffectAsk && r.options.MayHeal(r.newDrift(s)):
		return decide.Response{}
	case s.Effect == decide.EffectAsk:
		return decide.Response{Err: errDenied}
	case s.Effect == decide.EffectFindOwners:
		return decide.Response{Owners: r.findOwners(ctx, s.Owners)}
	case r.rules.DryRun && (s.Effect == decide.EffectMerge || s.Effect == decide.EffectRename || s.Effect == decide.EffectApply && f.Want == nil):
		return decide.Response{Live: cmp.Or(f.Answer, f.Live)}
	}
	s.DryRun = s.DryRun || r.rules.DryRun
	live, err := r.cluster.do(ctx, s)
	res := decide.Response{Live: live, Err: err}
	if r.options.LeaveUnreadable != nil && s.IsUnreadable(err) {
		res.Unreadable = decide.UnreadableWait
		if r.options.LeaveUnreadable(f.Ref()) {
			res.Unreadable = decide.UnreadableLeave
		}
	}
	if s.Effect == decide.EffectDelete && s.IsFailure(err) && !isKindError(err) {
		res.Err = r.deniedDeletion(f.Ref(), err)
	}
	return res
}

// deniedDeletion classifies the error of a deletion. If an admission plugin denies a deletion, the error is not Permanent,
// whatever status code the answer has, because the same request may succeed later.
func (r *run) deniedDeletion(ref Ref, err error) *Error {
	denied := classify(ref, err, r.hide)
	if denied.Class == Permanent {
		denied.Class = Retry
	}
	return denied
}

// newDrift returns the question for Options.MayHeal.
func (r *run) newDrift(s decide.Step) Drift {
	f := s.Facts
	return Drift{Ref: f.Want.Ref, Resource: f.Want.Resource, UID: f.UID, Live: f.Live, Fields: driftFields(f.Live, s.Body)}
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

// ignore releases an object whose policy is Ignore now, if the item managed the object before.
func (r *run) ignore(ctx context.Context, o *desiredObject) *Error {
	if r.objects.get(o.ref).UID == "" {
		return nil
	}
	return r.release(ctx, o.ref, decide.Facts{Ignored: true})
}

// recordResult processes the last step for an object: it emits the events, classifies the error and records the result. It
// returns the classified error, or nil if there is no error or the object is only unfinished.
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
		end.Err = newWaitingError(f.Ref(), "the namespace %s %s", f.Namespace, r.namespaces.explain(ctx, r.cluster, f.Namespace))
	}
	switch {
	case f.Want == nil:
	case response.IsImmutable(end.Err):
		end.Err = immutableField(f.Want, f.Live, end.Err, r.hide)
	default:
		if one := defaultedField(f.Want, end.Err, r.hide); one != nil {
			end.Err = one
		}
	}
	return r.results.record(end)
}

func (r *run) result(ctx context.Context) (Inventory, Report, error) {
	err := r.results.err(ctx)
	out := r.results.toReport()
	out.Owned = r.objects.owned(nil)
	return r.objects.inventory(), out, err
}

// watch calls Options.Watch for the resources of a stage.
func (r *run) watch(ctx context.Context, objects []*desiredObject) {
	if r.options.Watch == nil {
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
		r.options.Watch(ctx, resource, slices.Sorted(maps.Keys(namespaces)))
	}
}
