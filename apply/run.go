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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/internal/redact"
	"github.com/deployerkit/deployerkit/observe"
)

// run is one call of the engine, or one Session. For each object, it decides on a step, takes the step and records the
// result. It repeats this until nothing is left to do for the object.
type run struct {
	rules   rules
	cluster cluster
	kinds   *kinds
	objects *tracker
	results *results
	hide    *redact.Redactor
	// namespaces explains why namespaces that are being deleted still exist.
	namespaces *namespaces
}

// apply applies one object of the inventory. The returned error is the same as Outcome.Err.
func (r *run) apply(ctx context.Context, o *object) (Outcome, *Error) {
	out := Outcome{Ref: o.ref}
	switch {
	case o.Policy == Ignore:
		failed := r.ignore(ctx, o)
		if failed != nil {
			out.Err = failed
		}
		return out, failed
	case o.untouched():
		return out, nil
	case o.unserved != nil:
		r.results.note(o.ref, o.unserved)
		out.Waiting, out.NotServed = o.unserved.Reason, true
		return out, nil
	}
	end := r.work(ctx, o.ref, known{want: o}, decideApply)
	failed := r.conclude(ctx, end)
	if failed != nil {
		if o.Hint != "" {
			failed.Reason += ": " + o.Hint
		}
		out.Err = failed
	}
	waits := r.results.waitsFor(o.ref)
	out.Live, out.Changed, out.Waiting, out.NotServed = end.known.outcome, end.known.changed, waits.Reason, waits.NotServed
	return out, failed
}

// work takes the steps for one object of the inventory, and returns the last step.
func (r *run) work(ctx context.Context, ref Ref, k known, first decision) (end step) {
	r.objects.withEntry(ref, func(s *entryState) {
		k.entryState = *s
		if k.want != nil {
			k.gone, k.changed, k.resource = false, false, k.want.kind.resource
			k.wasApplied = k.want.Strategy != OnDelete && k.Hash == k.want.hash && r.rules.Applied.has(ref.id(), state{k.UID, k.Hash})
		}
		k.seen = r.look(k.entryState)
		end = r.pursue(ctx, first(r.rules, k))
		*s = end.known.afterRejection(end.err)
	})
	return end
}

// afterRejection returns the entry of an object after the last step. If the API server rejected the first write of the
// object, the item has not created the object, so the entry is removed from the inventory. Otherwise the item would have
// to prove later that the object does not exist, which it may not be allowed to.
func (k known) afterRejection(err error) entryState {
	out := k.entryState
	rejected := isRejected(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if out.fresh && out.UID == "" && !k.mayExist && k.want != nil && rejected {
		out.gone = true
	}
	out.fresh = out.fresh && !k.mayExist
	return out
}

// look returns an object as a watch last reported it, or nil if no watch has reported the object.
func (r *run) look(s entryState) *observe.State {
	if r.rules.Seen == nil || s.UID == "" || s.Deleting {
		return nil
	}
	resource := r.kinds.resourceOf(s)
	if resource.Empty() {
		return nil
	}
	if seen, known := r.rules.Seen.Get(resource, s.Ref().Key()); known {
		return &seen
	}
	return nil
}

// pursue takes the steps for one object, beginning with s, and returns the last step. For a plan, the last step may be
// the step that would create or delete the object.
func (r *run) pursue(ctx context.Context, s step) step {
	for range maxSteps {
		if s.effect == "" || r.rules.dry && (s.effect == effectCreate || s.effect == effectDelete) {
			return s
		}
		live, err := r.do(ctx, s)
		if moved, ok := s.inServedVersion(err); ok {
			s = moved
			live, err = r.do(ctx, s)
		}
		s = s.after(r.rules, live, err)
	}
	if s.effect == "" || r.rules.dry {
		return s
	}
	return s.known.wait("changes constantly")
}

// errDenied is the result of a step that Options.MayHeal does not allow.
var errDenied = errors.New("Options.MayHeal does not allow the correction now")

// do takes one step. If an admission plugin denies a deletion, the error is not Permanent, whatever status code the
// answer has, because the same request may succeed later. For a plan, do sends writes as dry runs. It skips steps that
// do not affect the plan: merge patches, changes of field managers, and applies to objects that are no longer desired.
func (r *run) do(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	switch {
	case s.effect == effectAsk && r.rules.MayHeal(*s.drift):
		return nil, nil
	case s.effect == effectAsk:
		return nil, errDenied
	case s.effect == effectFindOwners:
		s.owners.find(ctx, r.rules)
		return nil, nil
	case r.rules.dry && (s.effect == effectMerge || s.effect == effectTakeOver || s.effect == effectApply && s.known.want == nil):
		return cmp.Or(s.known.answer, s.known.live), nil
	}
	s.dry = s.dry || r.rules.dry
	live, err := r.cluster.do(ctx, s)
	if r.rules.LeaveUnreadable != nil && s.mayBeUnreadable(err) {
		return nil, &unreadableError{err: err, leave: r.rules.LeaveUnreadable(s.known.Ref())}
	}
	if s.effect == effectDelete && resultOf(absence.Of(s.known.asAbsent(), err), err) == resultFailed && !isKindError(err) {
		denied := classify(s.known.Ref(), err, r.hide)
		if denied.Class == Permanent {
			denied.Class = Retry
		}
		err = denied
	}
	return live, err
}

// conclude processes the last step for an object: it emits the events, classifies the error and records the result. It
// returns the classified error, or nil if there is no error or the object is only unfinished.
func (r *run) conclude(ctx context.Context, end step) *Error {
	k := end.known
	for _, event := range k.events {
		event.Message = clean(r.hide, event.Message)
		if r.rules.Events != nil {
			r.rules.Events(event)
		}
	}
	if end.usable {
		r.rules.Applied.add(k.Ref().id(), state{k.UID, k.Hash})
		if isDefinition(k.Ref().GVK().GroupKind()) && !k.Pending {
			meta.MaybeResetRESTMapper(r.kinds.mapper) // the mapper may have cached that the kind does not exist
		}
	}
	if apierrors.HasStatusCause(end.err, corev1.NamespaceTerminatingCause) {
		end.err = waiting(k.Ref(), "the namespace %s %s", k.Namespace, r.namespaces.explain(ctx, r.cluster, k.Namespace))
	}
	switch {
	case k.want == nil:
	case isImmutable(end.err):
		end.err = immutableField(k.want, k.live, end.err, r.hide)
	default:
		if one := defaultedField(k.want, end.err, r.hide); one != nil {
			end.err = one
		}
	}
	return r.results.record(end)
}

func (r *run) result(ctx context.Context) (Inventory, Report, error) {
	err := r.results.err(ctx)
	out := r.results.reported()
	out.Owned = r.objects.owned(nil)
	return r.objects.inventory(), out, err
}

// watch calls Options.Watch for the resources of a stage.
func (r *run) watch(ctx context.Context, objects []*object) {
	if r.rules.Watch == nil {
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
		r.rules.Watch(ctx, resource, slices.Sorted(maps.Keys(namespaces)))
	}
}
