// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Release returns the first step for an object with the policy apply.PolicyKeep or apply.PolicyIgnore that the item no
// longer manages. The object is marked as released, so that any item may take it over. An object that belongs to
// another item, or to several items, stays unchanged.
func Release(r *Rules, f Facts) Step {
	switch {
	case f.UID == "":
		return f.doneForgotten()
	case !r.isShared(f.Ref()) && r.isWatchedAsOwn(f):
		return markReleased(r, f)
	}
	return f.readMetadata(removeReading)
}

func handleRemoveReading(r *Rules, f Facts) Step {
	if f.Live == nil || f.Live.GetUID() != f.UID || !r.isOwnByLabel(f.Live) || len(r.listOtherOwners(f.Live)) > 0 {
		return f.doneForgotten()
	}
	return markReleased(r, f)
}

func markReleased(r *Rules, f Facts) Step {
	return f.mergeAnnotations(r, removeReleasing, f.UID, map[string]any{ownership.AnnotationPolicy: ownership.PolicyReleased})
}

// handleReleasing is called after marking an object as released. If the policy is apply.PolicyKeep, an error does not
// keep the object in the inventory: without the mark, the object can be taken over as soon as the item does not exist
// any more.
func handleReleasing(_ *Rules, f Facts) Step {
	switch {
	case f.class == response.ClassOK:
		f.recordEvent(object.ReasonReleased, "is kept because of its policy, and does not belong to this item any more")
	case f.Ignored && f.isRefused():
		f.Gone = false
		return f.fail(f.err)
	}
	return f.doneForgotten()
}
