// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// A UID in an inventory does not prove that an object belongs to the item. The inventory is stored in a status, which
// others may be able to write. An object is therefore deleted only if it also carries a mark of the item.

// isOwn reports whether a live object belongs to the item. It has the item's label, or it is the entry's object and
// has another mark of the item.
func (r *run) isOwn(live metav1.Object, s *slot) bool {
	return r.isOurs(live) || live.GetUID() == s.UID && r.isMarked(live, s)
}

// isMarked reports whether the entry's object has a mark of the item, and no mark of another item unless items share
// its kind. The item's field manager is a mark because its name contains the item's UID, and it stays when the label
// is removed. The label of Landscaper's own deployer contains only the item's name.
func (r *run) isMarked(live metav1.Object, s *slot) bool {
	owners := ownership.OwnersOf(live)
	if len(owners) > 0 && !r.isShared(s.Ref()) {
		return r.isOurs(live)
	}
	if slices.ContainsFunc(owners, r.owner.SameItem) {
		return true
	}
	if r.owner.Name != "" && live.GetLabels()[landscaperLabel] == r.owner.Name {
		return true
	}
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == r.owner.Manager()
	})
}

// showsAsOurs reports whether a watch shows the entry's object with the item's label, so that it need not be read.
func (r *run) showsAsOurs(s *slot) bool {
	if r.options.Seen == nil || s.UID == "" || r.owner.UID == "" {
		return false
	}
	kind, err := r.kindOf(s.Ref(), nil)
	if err != nil {
		return false
	}
	seen, known := r.options.Seen.Seen(kind.resource, s.Ref().Key())
	return known && seen.UID == s.UID && seen.Item == r.owner.UID
}

// owns reports whether the entry's object belongs to the item. It makes at most one call.
func (r *run) owns(ctx context.Context, s *slot) (bool, error) {
	if r.showsAsOurs(s) {
		return true, nil
	}
	live := metadataOf(s.Ref())
	if err := r.client.Get(ctx, s.Ref().Key(), live); err != nil {
		return false, ignoreGone(err)
	}
	return live.GetUID() == s.UID && r.isMarked(live, s), nil
}

// letGo forgets an object of the inventory that has no mark of the item.
func (r *run) letGo(s *slot) {
	s.gone = true
	r.event(s.Ref(), ReasonLeftAlone, "has no mark of this item; it is not deleted, and is forgotten")
}
