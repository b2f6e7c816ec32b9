// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// owners is the question whether the owners of an object still exist, and its answer.
type owners struct {
	ask    []ownership.Owner
	states []OwnerState // the state of each owner, in the same order
}

// maxOwners limits the owners of one object whose existence is checked. All other owners count as existing.
const maxOwners = 20

// find calls Options.FindOwner for the owners.
func (o *owners) find(ctx context.Context, r rules) {
	o.states = make([]OwnerState, len(o.ask))
	for i, owner := range o.ask[:min(len(o.ask), maxOwners)] {
		if r.mayFind(owner) {
			o.states[i] = r.FindOwner(ctx, owner)
		}
	}
}

// gone returns the owners that do not exist any more.
func (o *owners) gone() []ownership.Owner {
	var out []ownership.Owner
	for i, owner := range o.ask {
		if o.states[i] == OwnerGone {
			out = append(out, owner)
		}
	}
	return out
}

// mayFind reports whether it is possible to find out whether an owner exists. An item of another Landscaper cluster, or
// one whose annotations are missing, counts as existing.
func (r rules) mayFind(owner ownership.Owner) bool {
	return r.FindOwner != nil && r.owner.SameLandscape(owner) && owner.Namespace != "" && owner.Name != "" && owner.UID != ""
}

// findOwners finds out which of the given owners still exist, unless it is known that none of them can be found.
func (k known) findOwners(r rules, ask []ownership.Owner, next func(rules, known, *owners) step) step {
	found := &owners{ask: ask, states: make([]OwnerState, len(ask))}
	if !slices.ContainsFunc(ask, r.mayFind) {
		return next(r, k, found)
	}
	return step{known: k, effect: effectFindOwners, owners: found, next: func(r rules, k known) step { return next(r, k, found) }}
}

// isFormer reports whether an owner of the object does not exist any more or has released the object.
func (k known) isFormer(owner ownership.Owner) bool { return slices.Contains(k.former, owner) }

// decideRival is called if an object belongs to another item. If that item has released the object or does not exist any
// more, decideRival calls the decision `again`, which then takes the object over. Otherwise, it ends the work on the
// object with the error.
func decideRival(r rules, k known, err error, again decision) step {
	one, ok := errors.AsType[*Error](err)
	if !ok || one.rival == nil || k.want.Policy == Fallback {
		return k.fail(err)
	}
	if ownership.IsReleased(k.live) {
		return decideSucceed(r, k, []ownership.Owner{*one.rival}, again)
	}
	return k.findOwners(r, []ownership.Owner{*one.rival}, func(r rules, k known, found *owners) step {
		switch found.states[0] {
		case OwnerGone:
			return decideSucceed(r, k, found.gone(), again)
		case OwnerExists:
			one.Class = Permanent // as long as the other item exists, a retry does not help
			one.Reason += "; to move it to this item, set its policy to keep in that item, and then remove it there"
		case OwnerDeleting:
			one.Reason += ", until that item is deleted"
		case OwnerUnknown:
			one.Reason += ", because it is not known whether that item still exists; if it does not, remove the label " +
				ownership.LabelItem + " from the object"
		}
		return k.fail(one)
	})
}

// decideSucceed makes this item the successor of the former owners of an object. The adoption policy applies in the same
// way as to an object without an owner.
func decideSucceed(r rules, k known, former []ownership.Owner, again decision) step {
	if r.refuses(k.want) {
		reason := fmt.Sprintf("already exists, belonged to deploy item %s, and is not adopted; allow adopting it, or delete it", former[0])
		return k.fail(&Error{Ref: k.want.ref, Reason: reason, Class: Retry, Status: metav1.StatusReasonConflict})
	}
	k.former = append(slices.Clip(k.former), former...)
	return again(r, k)
}

// takenOver returns the message of the event that reports that the item has taken an object over.
func (k known) takenOver() string {
	if len(k.former) == 0 {
		return takenOver
	}
	var names []string
	for _, owner := range k.former {
		names = append(names, owner.String())
	}
	text := fmt.Sprintf("belonged to deploy item %s, which does not exist any more or has released it, and now belongs to this item", strings.Join(names, ", "))
	if k.Adopted {
		text += "; it is kept when the item is deleted"
	}
	return text
}

// decideRelease is called for an object with the policy Keep or Ignore that the item no longer manages. It marks the
// object as released, so that any item may take it over. An object that belongs to another item, or to several items,
// stays unchanged.
func decideRelease(r rules, k known) step {
	if k.UID == "" {
		return k.leave()
	}
	if !r.isShared(k.Ref()) && r.showsAsOurs(k.seen, k.Entry) {
		return decideReleased(r, k)
	}
	return k.readMetadata(func(r rules, k known) step {
		if k.live == nil || k.live.GetUID() != k.UID || !r.isOurs(k.live) || len(r.others(k.live)) > 0 {
			return k.leave()
		}
		return decideReleased(r, k)
	})
}

// decideReleased sends the mark of decideRelease. If the policy is Keep, an error does not keep the object in the
// inventory: without the mark, the object can be taken over as soon as the item does not exist any more.
func decideReleased(r rules, k known) step {
	mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{ownership.AnnotationPolicy: ownership.PolicyReleased}}}
	return k.merge(r, k.UID, mark, func(_ rules, k known) step {
		switch {
		case k.result == resultOK:
			k.note(ReasonReleased, "is kept because of its policy, and does not belong to this item any more")
		case k.ignored && isRefused(k):
			k.gone = false
			return k.fail(k.err)
		}
		return k.leave()
	})
}

// decideUnrelease removes the mark of decideRelease from an object that the item has written again.
func decideUnrelease(r rules, k known) step {
	mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{ownership.AnnotationPolicy: nil}}}
	return k.merge(r, k.answer.GetUID(), mark, decideLanded)
}

// release lets go of an object that stays in the cluster; see decideRelease.
func (r *run) release(ctx context.Context, ref Ref, k known) *Error {
	return r.conclude(ctx, r.work(ctx, ref, k, decideRelease))
}

// ignore releases an object whose policy is Ignore now, if the item managed the object before.
func (r *run) ignore(ctx context.Context, o *object) *Error {
	if r.objects.at(o.ref).UID == "" {
		return nil
	}
	return r.release(ctx, o.ref, known{ignored: true})
}
