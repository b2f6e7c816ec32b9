// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// decideContact writes an object if the inventory does not show an earlier write by the item. It applies the object
// without force, so that the API server reports conflicts with other managers. It reads the object first if an earlier
// call added the object to the inventory and the options refuse existing objects without an owner. In this case, it
// accepts an existing object only if the object belongs to the item, for example because an interrupted call created
// it, or if the item may share the object with its owners.
func decideContact(r rules, k known) step {
	k.Adopted = k.Adopted && k.UID != ""
	switch {
	case r.dry && k.isCurrent && k.live != nil: // Plan has already read the object
		return decideContested(r, k)
	case k.fresh || !r.refuses(k.want):
		return k.apply(r, bodyFor(k), "", false, decideContacted)
	}
	return k.look(r, func(r rules, k known) step {
		live := k.live
		if live != nil && live.GetDeletionTimestamp() == nil && !r.isSharedNow(k) {
			mine, err := r.claimable(k)
			switch {
			case err != nil:
				return decideRival(r, k, err, decideContested)
			case !mine:
				return k.fail(refusal(k.want.ref, live))
			}
			k = inherit(r, k, live)
			k.written = true
		}
		return k.apply(r, bodyFor(k), "", false, decideContacted)
	})
}

// decideContacted returns the step after the first apply of an object.
func decideContacted(r rules, k known) step {
	o, live := k.want, k.answer
	switch {
	case k.result == resultConflict && k.live != nil:
		return decideContested(r, k)
	case k.result == resultConflict && (!k.fresh || r.mayBeOwned(k.err) || r.refuses(o)):
		return k.read(decideContested)
	case k.result == resultConflict:
		return decideTake(r, k)
	case k.result == resultImmutable && o.Strategy == Recreate:
		k.fault = k.err
		return k.read(decideImmutableOurs)
	case k.result == resultImmutable && r.Recreate && k.UID != "":
		return decideImmutableOwn(r, k)
	case k.result != resultOK:
		return k.failed()
	case r.isMarkedForAnother(k.Entry, live):
		return giveUp(r, k, r.markedForAnother(o.ref, live))
	case r.hasLeftovers(live):
		return decideInherit(r, k.at(live))
	case k.written || live.GetUID() == k.UID || !r.existedBefore(live) || live.GetDeletionTimestamp() != nil:
		return k.landed(r)
	case r.refuses(o):
		return giveUp(r, k, refusal(o.ref, live))
	}
	return decideAdopt(r, k, "already existed and had no owner")
}

// giveUp removes the item's fields from an object that the item applied without a conflict but must not own.
func giveUp(r rules, k known, why *Error) step {
	return k.applyNothing(r, k.answer.GetUID(), func(_ rules, k known) step {
		if k.result != resultOK {
			return k.failed()
		}
		return k.fail(why)
	})
}

// decideContested is called after reading an object in which other managers own fields. It never takes fields from
// another item.
func decideContested(r rules, k known) step {
	o, live := k.want, k.live
	switch {
	case live == nil:
		return k.wait("was deleted in the meantime")
	case r.isSharedNow(k):
		return decideShare(r, k)
	}
	mine, err := r.claimable(k)
	switch {
	case err != nil:
		return decideRival(r, k, err, decideContested)
	case mine:
		return decideInherit(r, k)
	case o.Policy != Fallback && r.refuses(o):
		return k.fail(refusal(o.ref, live))
	}
	return decideTake(r, k)
}

// decideTake applies the object with force. The item thereby takes over fields from managers that are not deploy items.
// If it is known that the object existed before, the same request marks the object as adopted.
func decideTake(r rules, k known) step {
	if k.want.Policy == Fallback {
		return step{known: k} // another writer created the object first
	}
	const message = "already existed and had no owner; other managers had set some of its fields"
	existed, body := r.isForeign(k), k.want.Object
	if existed && r.adoption(k.want) != AdoptAlways {
		body = markedAdopted(body)
	}
	return k.apply(r, body, "", true, func(r rules, k known) step {
		switch {
		case k.result != resultOK || k.answer.GetDeletionTimestamp() != nil:
		case existed:
			k = adopt(r, k, message)
		case r.existedBefore(k.answer):
			return decideAdopt(r, k, message)
		}
		return decideLanded(r, k)
	})
}

// isForeign reports whether an object in which other managers own fields is known to have existed before the item wrote
// it. If the object was not read, only a conflict about fields shows this, because the API server also reports
// conflicts of other kinds.
func (r rules) isForeign(k known) bool {
	if k.live == nil {
		return k.fresh && slices.ContainsFunc(causesOf(k.err), func(cause metav1.StatusCause) bool {
			return cause.Type == metav1.CauseTypeFieldManagerConflict
		})
	}
	_, applied := ownership.AppliedBy(ownership.Entries(k.live), r.owner.Manager())
	return !applied || r.existedBefore(k.live)
}

// adopt records that the object already existed when the item applied it for the first time.
func adopt(r rules, k known, message string) known {
	if k.Adopted = r.adoption(k.want) != AdoptAlways; k.Adopted {
		message += "; it is kept when the item is deleted"
	}
	k.note(ReasonAdopted, message)
	return k
}

// decideAdopt adopts an object that the last step wrote. Only the answer to that step showed that the object existed
// before, so a second request marks the object.
func decideAdopt(r rules, k known, message string) step {
	if r.adoption(k.want) == AdoptAlways {
		return adopt(r, k, message).landed(r)
	}
	return k.apply(r, markedAdopted(k.want.Object), k.answer.GetUID(), true, func(r rules, k known) step {
		if k.result == resultOK {
			k = adopt(r, k, message)
		}
		return decideLanded(r, k)
	})
}

// at replaces the object that the next decisions examine. The new object is usually the answer to a write.
func (k known) at(live *unstructured.Unstructured) known {
	k.live = live
	return k
}

// decideInherit transfers the fields of earlier owners to this item and then applies the manifest. The apply removes
// the transferred fields that the manifest does not contain.
func decideInherit(r rules, k known) step {
	updaters := append(slices.Clone(r.LandscaperManagers), r.owner.Manager())
	return decideTakeOver(r, inherit(r, k, k.live), updaters, func(r rules, k known) step {
		return k.apply(r, bodyFor(k), k.live.GetUID(), true, func(r rules, k known) step {
			if k.result == resultOK && k.UID == "" {
				k.note(ReasonTakenOver, k.takenOver())
			}
			return decideLanded(r, k)
		})
	})
}

// disowned returns the object that was read. If its owners are in k.former, disowned returns a copy that belongs to this
// item only.
func (r rules) disowned(k known) *unstructured.Unstructured {
	if len(k.former) == 0 {
		return k.live
	}
	out := k.live.DeepCopy()
	r.owner.Stamp(out)
	for _, owner := range k.former {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations", owner.SharedKey())
	}
	return out
}

const takenOver = "belonged to an earlier owner and now belongs to this item"

// decideTakeOver changes the managedFields entries of earlier owners. It replaces the field manager in these entries by
// the manager of this item. The next apply then removes the fields that its manifest does not contain.
func decideTakeOver(r rules, k known, updaters []string, next decision) step {
	rename, err := ownership.TakeOverPatch(r.disowned(k), r.owner, updaters...)
	switch {
	case err != nil:
		return k.fail(err)
	case rename == nil:
		return next(r, k)
	}
	return decideRename(k, rename, next)
}

// decideRename sends a patch of managedFields.
func decideRename(k known, rename []byte, next decision) step {
	return step{known: k, effect: effectTakeOver, rename: rename, next: func(r rules, k known) step {
		switch {
		case k.result == resultOK:
			return next(r, k)
		case k.result == resultConflict || k.result == resultMismatch || apierrors.IsNotFound(k.err):
			return k.wait("changed while the managers of its fields were changed")
		}
		return k.fail(k.err)
	}}
}
