// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// recreateChanged implements the strategy Recreate. A watch cannot show that everything matches, so the object is
// read. It is deleted only after a dry run shows that an apply would change it, so a manifest that the API server
// refuses deletes nothing.
func (r *run) recreateChanged(ctx context.Context, o *object, s *slot) error {
	if s.UID == "" {
		return r.firstContact(ctx, o, s)
	}
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil || live.GetUID() != s.UID:
		s.forget()
		return r.firstContact(ctx, o, s)
	case live.GetDeletionTimestamp() != nil:
		return waiting(o.ref, isGoing)
	case s.Hash == "":
		return r.firstContact(ctx, o, s)
	case s.isAsWanted(o, ownership.KeyOf(live, r.owner.Manager())):
		r.count(&r.report.Unchanged)
		s.Deleting, s.live, s.version = false, live, live.GetResourceVersion()
		return r.usable(o, s, live)
	}
	if r.isSharedNow(o, live) {
		return r.share(ctx, o, s, live)
	}
	if _, err := r.claimable(ctx, o, s, live); err != nil {
		return err
	}
	if !r.isOwn(live, s) {
		return r.firstContact(ctx, o, s)
	}
	changed, err := r.wouldChange(ctx, o, live)
	switch {
	case err != nil:
		return err
	case changed && r.postpones(o, s, live, nil):
		s.live = live
		return nil
	case changed:
		return r.recreate(ctx, o, s, isGoing)
	}
	return r.serverSide(ctx, o, s)
}

// wouldChange asks the API server whether an apply would change more than the item's marks.
func (r *run) wouldChange(ctx context.Context, o *object, live *unstructured.Unstructured) (bool, error) {
	after, err := r.send(ctx, o, live.GetUID(), client.ForceOwnership, client.DryRunAll)
	switch {
	case isImmutable(err), isWithoutDryRun(err):
		return true, nil
	case isAnother(err):
		return false, waiting(o.ref, "changed while it was looked at")
	case err != nil:
		return false, err
	}
	return differ(live, after), nil
}

// isWithoutDryRun reports whether a webhook does not support dry runs, so that their result is unknown.
func isWithoutDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// recreateOurs deletes an object with another value in an immutable field if the object belongs to the item although
// the inventory has lost that. For all other objects it returns refused.
func (r *run) recreateOurs(ctx context.Context, o *object, s *slot, refused error) error {
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil:
		return waiting(o.ref, "went away just now")
	case !r.isOwn(live, s):
		return refused
	case live.GetDeletionTimestamp() != nil:
		return waiting(o.ref, isGoing)
	}
	if _, err := r.claimable(ctx, o, s, live); err != nil {
		return err
	}
	s.UID = live.GetUID()
	return r.recreate(ctx, o, s, isGoing)
}

// recreateOwn replaces the entry's object because an immutable field changed. If the object has no mark of the item,
// recreateOwn returns refused.
func (r *run) recreateOwn(ctx context.Context, o *object, s *slot, refused error) error {
	mine, err := r.owns(ctx, s)
	switch {
	case err != nil:
		return err
	case !mine:
		return refused
	}
	return r.recreate(ctx, o, s, "is replaced, since a field changed that is immutable")
}

// recreate deletes exactly the entry's object. A later call that finds it gone creates it.
func (r *run) recreate(ctx context.Context, o *object, s *slot, why string) error {
	err := r.beforeDelete(ctx, s)
	version := ""
	if err == nil && r.isShared(o.ref) {
		version, err = r.unshared(ctx, o)
	}
	if err == nil {
		err = r.delete(ctx, s, version)
	}
	switch {
	case apierrors.IsConflict(err) || isAnother(err):
		return waiting(o.ref, "changed while it was deleted")
	case err != nil && !isGone(err):
		return err
	}
	s.Hash, s.Key, s.changed = "", "", true
	return waiting(o.ref, "%s", why)
}

// unshared returns the resourceVersion of the object. If another item owns the object, it returns an error.
func (r *run) unshared(ctx context.Context, o *object) (version string, err error) {
	live, err := r.read(ctx, o.ref)
	if err != nil || live == nil {
		return "", err
	}
	if others := r.others(live); len(others) > 0 {
		return "", invalid(o.ref, "", "cannot be deleted and created again: deploy item %s owns it as well", others[0])
	}
	return live.GetResourceVersion(), nil
}

// differ reports whether two versions of an object differ in more than the owner's marks and the fields that the API
// server writes by itself.
func differ(a, b *unstructured.Unstructured) bool {
	d := &differing{}
	d.walk("", unmarked(a), unmarked(b))
	return len(d.out) > 0
}

// unmarked returns a copy without the owner's labels and annotations.
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
