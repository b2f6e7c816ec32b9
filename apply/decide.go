// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// decideApply returns the first step for a desired object. If the caller or a watch shows that the object needs no
// request, this step ends the work on the object.
func decideApply(r rules, k known) step {
	if k.Finish = cmp.Or(k.Finish, FinishOf(k.want.Object)); k.mayBeFinished(r) {
		return decideFinishing(r, k)
	}
	return decideWanted(r, k)
}

// decideWanted returns the first step for an object that must exist.
func decideWanted(r rules, k known) step {
	isSeen := k.seen != nil && k.UID != "" && !k.Deleting && k.seen.UID == k.UID
	switch {
	case isSeen && k.seen.Deleting:
		return k.waitUntilGone(k.seen.Finalizers)
	case k.want.Unchanged && !r.Force && isSettled(k):
		return step{known: k, count: countUnchanged}
	case !isSeen:
		return decideUnseen(r, k)
	case k.Pending:
	case k.wasApplied && k.isLeftAs(k.seen.Key), !r.Force && k.isAsWanted(k.want, k.seen.Key):
		k.version = k.seen.ResourceVersion
		return step{known: k, count: countUnchanged}
	case k.want.Strategy == Apply && k.Key != "" && r.mayAsk(k):
		return k.ask(nil, nil, decideUnseen)
	}
	return decideUnseen(r, k)
}

// isSettled reports whether the engine has finished writing the manifest in an earlier call.
func isSettled(k known) bool {
	return k.UID != "" && !k.Deleting && !k.Pending && k.Hash != "" && (k.Hash == k.want.hash || k.want.Strategy == OnDelete)
}

// isAsWanted reports whether an existing object needs no write. The key is the ownership key that the object has now.
func (s *entryState) isAsWanted(o *object, key ownership.Key) bool {
	switch {
	case o.Policy == Immutable:
		return true
	case o.Strategy == OnDelete:
		return s.Hash != ""
	}
	return o.isTracked() && s.Hash == o.hash && s.Key != "" && s.Key == key
}

// decideUnseen returns the first request for an object that may need a write. It reads the object first if the policy
// or an unfinished write requires this.
func decideUnseen(r rules, k known) step {
	o := k.want
	switch {
	case k.Pending && k.Hash == o.hash && k.Key != "" || k.wasApplied:
		return k.look(r, decideWritten)
	case o.Policy == Immutable:
		return k.look(r, decideImmutable)
	case o.Policy == Fallback && k.UID == "":
		return k.look(r, decideFallback)
	}
	return decideWrite(r, k)
}

// decideWritten is called after reading an object that an earlier call wrote. Such an object is read if it was not
// usable yet after that write (see Entry.Pending), or if no watch confirms that it is unchanged.
func decideWritten(r rules, k known) step {
	switch live := k.live; {
	case live == nil || live.GetUID() != k.UID || !k.isLeftAs(ownership.KeyOf(live, r.owner.Manager())):
		return decideWrite(r, k)
	case live.GetDeletionTimestamp() != nil:
		return k.waitUntilGone(deletion.Finalizers(live))
	}
	return k.unchanged()
}

// decideImmutable is called after reading an object with the policy Immutable.
func decideImmutable(r rules, k known) step {
	switch live := k.live; {
	case live == nil:
		return k.create(r, decideCreated)
	case r.isOurs(live) || live.GetUID() == k.UID:
		k.UID, k.Hash, k.Key = live.GetUID(), k.want.hash, ""
		return k.unchanged()
	}
	k.forget()
	return k.leaveAlone("already exists and does not belong to this item; the policy immutable leaves it unchanged")
}

// decideFallback is called after reading an object with the policy Fallback. It writes the object only if the object
// does not exist or belongs to the item.
func decideFallback(r rules, k known) step {
	if k.live == nil || r.isOurs(k.live) {
		return decideWrite(r, k)
	}
	return k.leaveAlone("already exists and does not belong to this item; the policy fallback leaves it unchanged")
}

// decideWrite writes the object according to its strategy.
func decideWrite(r rules, k known) step {
	o := k.want
	switch {
	case k.Shared && r.mayShare(o):
		return k.apply(r, r.part(k), k.UID, false, decidePart)
	case k.Shared:
		k.forget() // the owner label names another item
	}
	switch o.Strategy {
	case Apply:
		return decideKnown(r, k)
	case Recreate:
		if k.UID == "" {
			return decideContact(r, k)
		}
		return k.look(r, decideRecreate)
	case OnDelete:
		if !k.isCurrent && (k.UID == "" || k.Hash == "") {
			return k.create(r, decideCreated)
		}
		return k.look(r, decideOnDelete)
	case Update, Patch, Merge, MergeOverwrite:
	}
	return k.look(r, decideReplace)
}

// decideCreated is called after a create request. If the object already exists and has the strategy OnDelete, the
// object is read.
func decideCreated(r rules, k known) step {
	if k.result == resultExists && k.want.Strategy == OnDelete && k.want.Policy != Immutable {
		return k.read(decideOnDelete)
	}
	return decideLanded(r, k)
}

// decideLanded is called after the last write of an object.
func decideLanded(r rules, k known) step {
	if k.result != resultOK {
		return k.failed()
	}
	return k.landed(r)
}

// decideOnDelete is called after reading an object with the strategy OnDelete. If the object belongs to the item, only
// the owner label and the owner annotations are restored.
func decideOnDelete(r rules, k known) step {
	live := k.live
	switch {
	case live == nil:
		k.forget()
		return k.create(r, decideCreated)
	case live.GetUID() != k.UID && !r.isOurs(live):
		k.forget()
		return decideContact(r, k)
	case live.GetDeletionTimestamp() != nil:
		return k.waitUntilGone(deletion.Finalizers(live))
	}
	if _, err := r.claimable(k); err != nil {
		return decideRival(r, k, err, decideContested)
	}
	if live.GetUID() != k.UID {
		k.forget()
		k = inherit(r, k, live)
	}
	if k.UID = live.GetUID(); k.Hash == "" {
		k.Hash = k.want.hash
	}
	if owner, _ := ownership.OwnerOf(live); owner == r.owner && !ownership.IsReleased(live) {
		return k.unchanged()
	}
	marks := &unstructured.Unstructured{Object: map[string]any{}}
	r.owner.Stamp(marks)
	if ownership.IsReleased(live) {
		_ = unstructured.SetNestedField(marks.Object, nil, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	return k.merge(r, k.UID, marks.Object, func(_ rules, k known) step {
		if k.result != resultOK {
			return k.failed()
		}
		k.outcome, k.changed, k.Deleting, k.version = k.live, true, false, k.live.GetResourceVersion()
		return k.finish(countApplied)
	})
}

// decideKnown applies an object with the strategy Apply. If the item wrote the object before, the request requires the
// recorded UID, so that it cannot change a different object.
func decideKnown(r rules, k known) step {
	o := k.want
	if k.Hash == "" || k.UID == "" {
		return decideContact(r, k)
	}
	force := !r.mayShare(o) || k.Hash == o.hash // a new manifest may set fields of another owner
	return k.apply(r, bodyFor(k), k.UID, force, func(r rules, k known) step {
		switch {
		case k.result == resultOK && r.hasLeftovers(k.answer):
			return decideInherit(r, k.at(k.answer))
		case k.result == resultMismatch:
			k.forget()
			return decideContact(r, k)
		case k.result == resultConflict && !force && k.live != nil:
			return decideDisputed(r, k)
		case k.result == resultConflict && !force:
			return k.read(decideDisputed)
		case k.result == resultImmutable && r.Recreate:
			return decideImmutableOwn(r, k)
		case isAmbiguous(k.err):
			return decideRekey(k)
		}
		return decideLanded(r, k)
	})
}

// decideAfterDeployment sends PatchAfterDeployment.
func decideAfterDeployment(r rules, k known) step {
	out := k.merge(r, k.UID, k.want.PatchAfterDeployment, func(r rules, k known) step {
		switch {
		case k.absent == absence.Done:
			k.Finish = FinishGone
			return step{known: k, count: countUnchanged}
		case k.result != resultOK:
			return k.fail(k.err)
		}
		k.version = k.answer.GetResourceVersion()
		if k.PatchDue = false; k.Key != "" {
			k.Key = ownership.KeyOf(k.answer, r.owner.Manager())
		}
		return step{known: k, count: countApplied}
	})
	out.strict = true
	return out
}
