// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// serverSide implements the strategy Apply. An object that the item wrote before belongs to it: its fields are
// forced, and the UID ensures that it is the same object. All other objects go through firstContact.
func (r *run) serverSide(ctx context.Context, o *object, s *slot) error {
	if s.Hash == "" || s.UID == "" {
		return r.firstContact(ctx, o, s)
	}
	force := []client.ApplyOption{client.ForceOwnership}
	if r.mayShare(o) && s.Hash != o.hash {
		force = nil // a new manifest may want a field of another owner
	}
	live, err := r.send(ctx, o, s.UID, force...)
	switch {
	case err == nil && r.hasLeftovers(live):
		return r.inherit(ctx, o, s, live)
	case err == nil:
		return r.landed(o, s, live)
	case isAnother(err):
		s.forget()
		return r.firstContact(ctx, o, s)
	case len(force) == 0 && apierrors.IsConflict(err):
		return r.disputed(ctx, o, s)
	case r.options.Recreate && isImmutable(err):
		return r.recreateOwn(ctx, o, s, err)
	}
	return err
}

// firstContact applies without force, so that the API server reports conflicts with other managers.
func (r *run) firstContact(ctx context.Context, o *object, s *slot) error {
	written, err := r.mayHaveWritten(ctx, o, s)
	if err != nil {
		return err
	}
	live, err := r.send(ctx, o, "")
	switch {
	case apierrors.IsConflict(err):
		return r.contested(ctx, o, s, err)
	case o.Strategy == Recreate && isImmutable(err):
		return r.recreateOurs(ctx, o, s, err)
	case r.options.Recreate && s.UID != "" && isImmutable(err):
		return r.recreateOwn(ctx, o, s, err)
	case err != nil:
		return err
	case r.isMarkedForAnother(s, live):
		return r.release(ctx, o, live)
	case r.hasLeftovers(live):
		return r.inherit(ctx, o, s, live)
	case !written && live.GetUID() != s.UID && r.existedBefore(live) && live.GetDeletionTimestamp() == nil:
		if r.refuses(o) {
			return r.giveBack(ctx, o, live)
		}
		if err := r.adopt(ctx, o, s, live, "existed already and had no owner"); err != nil {
			return err
		}
	}
	return r.landed(o, s, live)
}

// contested continues after a conflict over fields of other managers. It never takes fields of another item.
func (r *run) contested(ctx context.Context, o *object, s *slot, conflict error) error {
	if !s.fresh || r.mayBeOwned(conflict) || r.refuses(o) {
		if done, err := r.meet(ctx, o, s); done || err != nil {
			return err
		}
	}
	if o.Policy == Fallback {
		return nil // another writer was faster
	}
	live, err := r.send(ctx, o, "", client.ForceOwnership)
	if err != nil {
		return err
	}
	// A conflict that is not about fields says nothing about who made the object.
	if live.GetDeletionTimestamp() == nil && r.existedBefore(live) {
		if err := r.adopt(ctx, o, s, live, "existed already and had no owner; others had set some of its fields"); err != nil {
			return err
		}
	}
	return r.landed(o, s, live)
}

// meet finds out who owns an object that has fields of others. It reports whether the object needs nothing more.
func (r *run) meet(ctx context.Context, o *object, s *slot) (done bool, err error) {
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return false, err
	case live == nil:
		return false, waiting(o.ref, "went away just now")
	case r.isSharedNow(o, live):
		return true, r.share(ctx, o, s, live)
	}
	mine, err := r.claimable(ctx, o, s, live)
	switch {
	case err != nil:
		return false, err
	case mine:
		return true, r.inherit(ctx, o, s, live)
	case o.Policy != Fallback && r.refuses(o):
		return false, refusal(o.ref, live)
	}
	return false, nil
}

// send applies the object. If uid is not empty, only the object with that UID is changed.
func (r *run) send(ctx context.Context, o *object, uid types.UID, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
	body := o.Object.DeepCopy()
	if uid != "" {
		body.SetUID(uid)
	}
	options := append([]client.ApplyOption{client.FieldOwner(r.owner.Manager())}, more...)
	if r.dry {
		options = append(options, client.DryRunAll)
	}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...)
	return body, err
}

// mayBeOwned reports whether a conflict may be with another item: one of its causes names the owner label or the field
// manager of one of Landscaper's deployers.
func (r *run) mayBeOwned(conflict error) bool {
	for _, cause := range causesOf(conflict) {
		if strings.Contains(cause.Field, ownership.LabelItem) {
			return true
		}
		for _, manager := range r.options.LandscaperManagers {
			if strings.Contains(cause.Message, `"`+manager+`"`) {
				return true
			}
		}
	}
	return false
}

// existedBefore reports whether others made the object, because one of them wrote when it was created, or the item
// did not. An object that the item made and forgot when it was stopped is not adopted.
func (r *run) existedBefore(live *unstructured.Unstructured) bool {
	ours, _ := ownership.Entry(live, r.owner.Manager())
	created := live.GetCreationTimestamp()
	others := slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != r.owner.Manager() && entry.Subresource == "" && created.Equal(entry.Time)
	})
	return others || len(live.GetManagedFields()) > 1 && !created.Equal(ours.Time)
}

func causesOf(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// isAnother reports whether the object with the known UID is gone, and another one may have its name.
func isAnother(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusConflict:
		return strings.Contains(status.Status().Message, "uid mismatch")
	case http.StatusUnprocessableEntity:
		for _, cause := range causesOf(err) {
			if cause.Field == "metadata.uid" {
				return true
			}
		}
	}
	return false
}

// isImmutable reports whether an immutable field was changed.
func isImmutable(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	for _, cause := range causesOf(err) {
		for _, text := range []string{"immutable", "may not change", "cannot change", "updates to"} {
			if strings.Contains(cause.Message, text) {
				return true
			}
		}
	}
	return false
}
