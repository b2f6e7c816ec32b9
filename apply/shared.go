// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// isShared reports whether objects of a kind may belong to several items.
func (e *Engine) isShared(ref Ref) bool {
	return slices.Contains(e.options.SharedKinds, ref.GVK().GroupKind())
}

// mayShare reports whether the item may own the object together with others.
func (e *Engine) mayShare(o *object) bool {
	return e.isShared(o.ref) && o.Strategy != OnDelete && (o.Policy == Manage || o.Policy == Keep)
}

// others returns the owners of an object other than this item.
func (r *run) others(live metav1.Object) []ownership.Owner {
	return slices.DeleteFunc(ownership.OwnersOf(live), r.owner.SameItem)
}

// isSharedNow reports whether the item has to write the object as one of several owners.
func (r *run) isSharedNow(o *object, live metav1.Object) bool {
	return r.mayShare(o) && len(r.others(live)) > 0
}

// isSecond reports whether the label of an object names another item.
func (r *run) isSecond(live metav1.Object) bool {
	owner, owned := ownership.OwnerOf(live)
	return owned && !r.owner.SameItem(owner)
}

// part returns the object in the form that an owner writes if the label names another one.
func (r *run) part(o *object) *object {
	out := *o
	out.Object = o.Object.DeepCopy()
	r.owner.StampShared(out.Object)
	return &out
}

// share writes the item's part of an object that other items own as well. It uses server-side apply whatever the
// strategy is, because nothing else leaves the fields of the others alone.
func (r *run) share(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) error {
	switch {
	case live.GetDeletionTimestamp() != nil:
		return waiting(o.ref, isGoing)
	case r.isMarkedForAnother(s, live):
		return markedForAnother(o.ref, live)
	case live.GetUID() != s.UID:
		s.forget()
	}
	if err := r.takeOver(ctx, o.ref, live, r.owner.Manager()); err != nil {
		return err
	}
	after, err := r.sendShared(ctx, o, live)
	if isAnother(err) {
		return waiting(o.ref, "changed while it was written")
	}
	if err != nil {
		return err
	}
	err = r.landedShared(o, s, after)
	s.changed = after.GetResourceVersion() != live.GetResourceVersion()
	return err
}

// writeShared writes an object whose label named another item at the last write. It needs one call if that is still
// so.
func (r *run) writeShared(ctx context.Context, o *object, s *slot) error {
	live, err := r.send(ctx, r.part(o), s.UID)
	switch {
	case isAnother(err):
		s.forget()
		return r.write(ctx, o, s)
	case apierrors.IsConflict(err):
		return r.disputed(ctx, o, s)
	case err != nil:
		return err
	case !r.isSecond(live):
		return r.share(ctx, o, s, live) // the label was moved to this item
	}
	return r.landedShared(o, s, live)
}

// disputed continues after a conflict over fields of an object that is known to belong to this item.
func (r *run) disputed(ctx context.Context, o *object, s *slot) error {
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil || live.GetUID() != s.UID:
		s.forget()
		return waiting(o.ref, "went away just now")
	}
	return r.share(ctx, o, s, live)
}

// landedShared does the work of landed for one of several owners. Only the owner in the label has an ownership key,
// because watches know no other.
func (r *run) landedShared(o *object, s *slot, live *unstructured.Unstructured) error {
	before := s.Shared
	err := r.landed(o, s, live)
	if live.GetDeletionTimestamp() != nil {
		return err
	}
	if s.Shared = r.isSecond(live); !s.Shared {
		return err
	}
	s.Key = ""
	if owner, _ := ownership.OwnerOf(live); !before {
		s.Adopted = live.GetAnnotations()[annotationAdopted] != ""
		r.event(o.ref, ReasonShared, fmt.Sprintf("belongs to deploy item %s, and to this one as well now", owner))
	}
	return err
}

// sendShared applies the item's part. It forces fields without a manager, or of a manager that is not a deploy item.
// It never forces fields of another owner, because each item would then undo the changes of the other.
func (r *run) sendShared(ctx context.Context, o *object, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	part := o
	if r.isSecond(live) {
		part = r.part(o)
	}
	after, err := r.send(ctx, part, live.GetUID())
	if !apierrors.IsConflict(err) || isAnother(err) {
		return after, err
	}
	if fault := r.wantedTwice(o.ref, live, err); fault != nil {
		return nil, fault
	}
	return r.send(ctx, part, live.GetUID(), client.ForceOwnership)
}

// conflictWith matches the field manager in a cause of a conflict.
var conflictWith = regexp.MustCompile(`^conflict with "([^"]+)"`)

// wantedTwice returns the error for a field to which another item wants to give another value. It returns nil if no
// other item is part of the conflict.
func (r *run) wantedTwice(ref Ref, live metav1.Object, conflict error) *Error {
	others := r.others(live)
	for _, cause := range causesOf(conflict) {
		found := conflictWith.FindStringSubmatch(cause.Message)
		if found == nil || !ownership.IsManager(found[1]) {
			continue
		}
		for _, other := range others {
			if other.Manager() == found[1] {
				return invalid(ref, cause.Field, "deploy item %s owns the object as well, and wants another value", other)
			}
		}
		return waiting(ref, "changed while it was written")
	}
	return nil
}

// takeOver renames the entries of earlier owners to this item, so that their fields are removed when they are not
// applied.
func (r *run) takeOver(ctx context.Context, ref Ref, live metav1.Object, updaters ...string) error {
	body, err := ownership.TakeOverPatch(live, r.owner, updaters...)
	if err != nil {
		return fmt.Errorf("take over fields: %w", err)
	}
	if body == nil || r.dry {
		return nil
	}
	err = r.client.Patch(ctx, ref.empty(), client.RawPatch(types.JSONPatchType, body))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return waiting(ref, "changed while it was taken over")
	}
	return err
}
