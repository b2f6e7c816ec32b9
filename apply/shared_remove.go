// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// maxLooks is how often an object that changes constantly is read in one call.
const maxLooks = 5

// removeShared deletes an object that no other item owns. Otherwise it only gives up this item's part. Both apply
// only to the version of the object that was read. If two owners leave at the same time, they cannot both leave the
// object to the other, and an owner that joins is noticed.
func (r *run) removeShared(ctx context.Context, s *slot, force bool) error {
	if s.Deleting {
		return r.confirm(ctx, s, force)
	}
	var err error
	prepared := false
	for range maxLooks {
		live, lookErr := r.lookToRemove(ctx, s)
		switch {
		case lookErr != nil || live == nil:
			return lookErr
		case live.DeletionTimestamp != nil:
			s.Deleting = true
			return r.confirm(ctx, s, force)
		}
		if others := r.others(live); len(others) > 0 {
			err = r.resign(ctx, s, live, others)
		} else if s.Adopted {
			return r.unmark(ctx, s)
		} else if prepared || !s.hasBeforeDelete() {
			err = r.deleteLast(ctx, s, live, force)
		} else if err = r.beforeDelete(ctx, s); err == nil {
			prepared = true
			continue // this changed the object, too
		}
		if !apierrors.IsConflict(err) && !isAnother(err) {
			return err
		}
	}
	return err
}

// lookToRemove reads the object of an entry. If the item no longer has the object, it returns nil and the entry is
// removed.
func (r *run) lookToRemove(ctx context.Context, s *slot) (*metav1.PartialObjectMetadata, error) {
	live := metadataOf(s.Ref())
	err := r.client.Get(ctx, s.Ref().Key(), live)
	switch {
	case isGone(err) && s.UID != "":
		r.gone(s)
		return nil, nil
	case isGone(err):
		s.gone = true
		return nil, nil
	case err != nil:
		return nil, err
	case r.belongsHere(s, live):
		s.UID = live.GetUID()
		return live, nil
	case live.GetUID() == s.UID:
		r.letGo(s)
	}
	s.gone = true
	return nil, nil
}

// belongsHere reports whether a live object is the object of the entry.
func (r *run) belongsHere(s *slot, live metav1.Object) bool {
	return r.isOwn(live, s) || slices.ContainsFunc(ownership.OwnersOf(live), r.owner.SameItem)
}

// deleteLast deletes an object that has no other owner, but only in the version that was read. If the object has
// changed since, it returns the conflict.
func (r *run) deleteLast(ctx context.Context, s *slot, live metav1.Object, force bool) error {
	err := r.delete(ctx, s, live.GetResourceVersion())
	switch {
	case err == nil:
		s.Deleting = true
		return r.confirm(ctx, s, force)
	case isGone(err):
		r.gone(s)
		return nil
	}
	return err
}

// resign removes the item's marks and fields from an object that others still own. It removes the marks first, each
// in a write to the version that was read. If the process is stopped after that, a later call removes the fields.
func (r *run) resign(ctx context.Context, s *slot, live metav1.Object, others []ownership.Owner) error {
	live, err := r.dropMarks(ctx, s, live)
	if err != nil {
		return err
	}
	if first, owned := ownership.OwnerOf(live); owned && r.owner.SameItem(first) {
		if live, err = r.handOver(ctx, s, live, others[0]); err != nil {
			return err
		}
	}
	if err := r.takeOver(ctx, s.Ref(), live, r.owner.Manager(), r.owner.PatchManager()); err != nil {
		return err
	}
	if err := r.applyNothing(ctx, s.Ref(), s.UID); err != nil && !isAnother(err) {
		return err
	}
	s.gone = true
	r.event(s.Ref(), ReasonReleased, fmt.Sprintf("is kept: deploy item %s owns it as well", others[0]))
	return nil
}

// dropMarks removes the annotations that name this item, in all its lives. It does not remove the label.
func (r *run) dropMarks(ctx context.Context, s *slot, live metav1.Object) (metav1.Object, error) {
	annotations := map[string]any{}
	for _, owner := range ownership.OwnersOf(live) {
		if _, found := live.GetAnnotations()[owner.SharedKey()]; found && r.owner.SameItem(owner) {
			annotations[owner.SharedKey()] = nil
		}
	}
	if len(annotations) == 0 {
		return live, nil
	}
	after := s.Ref().empty()
	metadata := map[string]any{"resourceVersion": live.GetResourceVersion(), "annotations": annotations}
	return after, r.mergeInto(ctx, after, s.UID, map[string]any{"metadata": metadata})
}

// handOver moves the label to another owner, under that owner's manager for patches, so that the owner does not see a
// foreign change. It uses an apply, because otherwise the annotations that are the same for both would be removed
// with this item's fields.
func (r *run) handOver(ctx context.Context, s *slot, live metav1.Object, next ownership.Owner) (metav1.Object, error) {
	body := s.Ref().empty()
	body.SetUID(s.UID)
	body.SetResourceVersion(live.GetResourceVersion())
	next.Stamp(body)
	return body, r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body),
		client.FieldOwner(next.PatchManager()), client.ForceOwnership)
}

// applyNothing gives up all fields that the item has applied to exactly this object.
func (r *run) applyNothing(ctx context.Context, ref Ref, uid types.UID) error {
	body := ref.empty()
	body.SetUID(uid)
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(r.owner.Manager()))
}
