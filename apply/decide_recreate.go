// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// decideRecreate is called after reading an object with the strategy Recreate. Before the object is deleted, a dry run
// must show that an apply would change it. Therefore, an object is not deleted if the API server rejects its new
// manifest.
func decideRecreate(r rules, k known) step {
	o, live := k.want, k.live
	switch {
	case live == nil || live.GetUID() != k.UID:
		k.forget()
		return decideContact(r, k)
	case live.GetDeletionTimestamp() != nil:
		return k.waitUntilGone(deletion.Finalizers(live))
	case k.Hash == "":
		return decideContact(r, k)
	case k.isAsWanted(o, ownership.KeyOf(live, r.owner.Manager())):
		return k.unchanged()
	case r.isSharedNow(k):
		return decideShare(r, k)
	}
	if _, err := r.claimable(k); err != nil {
		return decideRival(r, k, err, decideContested)
	}
	if !r.isOwn(live, k.Entry) {
		return decideContact(r, k)
	}
	out := k.apply(r, bodyFor(k), live.GetUID(), true, decideTried)
	out.dry = true
	return out
}

// decideTried is called after the dry run of an apply. It deletes the object if the apply would change more than the
// owner label and the owner annotations, or would change an immutable field. It also deletes the object if a webhook
// does not support dry runs, because the effect of the apply is unknown then.
func decideTried(r rules, k known) step {
	switch {
	case k.result == resultImmutable, isWithoutDryRun(k.err):
	case k.result == resultMismatch:
		return k.wait("changed while it was checked")
	case k.result != resultOK:
		return k.failed()
	case !differ(k.live, k.answer) && r.dry:
		return k.landed(r)
	case !differ(k.live, k.answer):
		return decideKnown(r, k)
	}
	recreate := func(r rules, k known) step { return decideDelete(r, k, isGoing) }
	if r.mayAsk(k) {
		return k.ask(k.live, nil, recreate)
	}
	return recreate(r, k)
}

// isWithoutDryRun reports whether the dry run failed because a webhook does not support dry runs. In that case, it is
// unknown whether an apply would change the object.
func isWithoutDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// decideImmutableOurs is called after the API server has rejected the change of an immutable field and the object has
// been read. It deletes the object if the object belongs to the item, even if the inventory does not contain the
// object's UID.
func decideImmutableOurs(r rules, k known) step {
	live := k.live
	switch {
	case live == nil:
		return k.wait("was deleted in the meantime")
	case !r.isOwn(live, k.Entry):
		return k.fail(k.fault)
	case live.GetDeletionTimestamp() != nil:
		return k.waitUntilGone(deletion.Finalizers(live))
	}
	if _, err := r.claimable(k); err != nil {
		return k.fail(err)
	}
	k.UID = live.GetUID()
	return decideDelete(r, k, isGoing)
}

const isReplaced = "is replaced%s, because an immutable field changed"

// decideImmutableOwn deletes an object of the inventory because an immutable field changed. A later call creates the
// object again. decideImmutableOwn fails if the object no longer exists, has another UID, or does not belong to the item.
func decideImmutableOwn(r rules, k known) step {
	if r.showsAsOurs(k.seen, k.Entry) {
		return decideDelete(r, k, isReplaced)
	}
	k.fault = k.err
	return k.read(func(r rules, k known) step {
		if k.live == nil || k.live.GetUID() != k.UID || !r.isMarked(k.live, k.Ref()) {
			return k.fail(k.fault)
		}
		return decideDelete(r, k, isReplaced)
	})
}

// decideDelete deletes an object so that a later call can create it again. The object must have the UID that the
// inventory records. If items may share objects of this kind, decideDelete reads the object first. The argument `why` is
// the reason for waiting, with a verb for the text about the finalizers.
func decideDelete(r rules, k known, why string) step {
	changed := func(k known) step {
		switch {
		case k.result == resultConflict || k.result == resultMismatch:
			return k.wait("changed while it was deleted")
		case k.result != resultOK && k.result != resultGone:
			return k.fail(k.err)
		}
		k.Hash, k.Key, k.changed = "", "", true
		return k.wait(why, deletion.Held(deletion.Finalizers(k.live)))
	}
	remove := func(k known, version string) step {
		return step{known: k, effect: effectDelete, uid: k.UID, version: version, next: func(_ rules, k known) step { return changed(k) }}
	}
	return decidePrepare(r, k, func(r rules, k known) step {
		switch {
		case k.prepared && k.result != resultOK:
			return changed(k)
		case !r.isShared(k.want.ref):
			return remove(k, "")
		}
		return k.look(r, func(r rules, k known) step {
			if k.live == nil {
				return remove(k, "")
			}
			if others := r.others(k.live); len(others) > 0 {
				return k.fail(invalid(k.want.ref, "", "cannot be deleted and created again, because deploy item %s also owns it", others[0]))
			}
			return remove(k, k.live.GetResourceVersion())
		})
	})
}

// differ reports whether two versions of an object differ. It ignores reserved labels and annotations (see
// ownership.IsReserved), and the fields that the API server maintains itself.
func differ(a, b *unstructured.Unstructured) bool {
	return len(fields.Diff(unmarked(a), unmarked(b))) > 0
}

// unmarked returns a copy of the object without reserved labels and annotations (see ownership.IsReserved).
func unmarked(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy().Object
	metadata, _ := out["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, isMap := metadata[field].(map[string]any)
		for key := range values {
			if ownership.IsReserved(key) {
				delete(values, key)
			}
		}
		if isMap && len(values) == 0 {
			delete(metadata, field)
		}
	}
	return out
}

// decideShare is called after reading an object that other items own as well. It applies only this item's fields,
// always by server-side apply. The other strategies would overwrite the fields of the other owners.
func decideShare(r rules, k known) step {
	live := k.live
	switch {
	case live.GetDeletionTimestamp() != nil:
		return k.waitUntilGone(deletion.Finalizers(live))
	case r.isMarkedForAnother(k.Entry, live):
		return k.fail(r.markedForAnother(k.want.ref, live))
	case live.GetUID() != k.UID:
		k.forget()
	}
	if k.UID != "" {
		return decideShareLiving(r, k)
	}
	return k.findOwners(r, r.others(live), func(r rules, k known, found *owners) step {
		gone := found.gone()
		if len(gone) < len(found.ask) {
			return decideShareLiving(r, k)
		}
		if k.former = gone; k.want.readsFirst() {
			return decideReplace(r, k)
		}
		return decideContested(r, k)
	})
}

// decideShareLiving makes the item one more owner of an object. At least one of the other owners exists.
func decideShareLiving(r rules, k known) step {
	return decideTakeOver(r, inherit(r, k, k.live), []string{r.owner.Manager()}, func(r rules, k known) step { return decideJoin(r, k, false) })
}

// decideJoin applies this item's fields to a shared object. After a conflict, it takes over fields from managers that
// are not deploy items. It never takes over fields from another owner, because both items would then overwrite each
// other repeatedly.
func decideJoin(r rules, k known, force bool) step {
	body := bodyFor(k)
	if r.isSecond(k.live) {
		body = r.part(k)
	}
	return k.apply(r, body, k.live.GetUID(), force, func(r rules, k known) step {
		switch {
		case k.result == resultMismatch:
			return k.wait("changed while it was written")
		case k.result == resultConflict && !force:
			if fault := r.wantedTwice(k.want.ref, k.live, k.err); fault != nil {
				return k.fail(fault)
			}
			return decideJoin(r, k, true)
		case k.result != resultOK:
			return k.failed()
		}
		out := landedShared(r, k)
		out.known.changed = k.answer.GetResourceVersion() != k.live.GetResourceVersion()
		return out
	})
}

// decidePart is called after the item applied its part of a shared object whose owner label named another item.
func decidePart(r rules, k known) step {
	switch {
	case k.result == resultMismatch:
		k.forget()
		return decideWrite(r, k)
	case k.result == resultConflict:
		return k.read(decideDisputed)
	case k.result != resultOK:
		return k.failed()
	case !r.isSecond(k.answer):
		return decideShare(r, k.at(k.answer)) // the owner label now names this item
	}
	return landedShared(r, k)
}

// decideDisputed is called after an apply has failed with a conflict over fields and the object has been read.
func decideDisputed(r rules, k known) step {
	if k.live == nil || k.live.GetUID() != k.UID {
		k.forget()
		return k.wait("was deleted in the meantime")
	}
	return decideShare(r, k)
}

// landedShared ends the work on an object with several owners after a successful write. It records an ownership key
// only if the owner label names this item, because watches compute the key only for the item in that label.
func landedShared(r rules, k known) step {
	before, live := k.Shared, k.answer
	out := k.landed(r)
	if live.GetDeletionTimestamp() != nil {
		return out
	}
	to := &out.known
	if to.Shared = r.isSecond(live); !to.Shared {
		return out
	}
	to.Key = ""
	if owner, _ := ownership.OwnerOf(live); !before {
		to.note(ReasonShared, fmt.Sprintf("belongs to deploy item %s and now also to this item", owner))
	}
	return out
}
