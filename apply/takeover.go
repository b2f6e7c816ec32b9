// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// landscaperLabel is the label with the name of the deploy item that Landscaper's manifest deployer puts on objects.
const landscaperLabel = "manifest.deployer.landscaper.gardener.cloud/deployitem"

// DefaultLandscaperManagers returns the field managers of Landscaper's own deployers, which are the names of their
// programs.
func DefaultLandscaperManagers() []string {
	return []string{"manifest-deployer-controller", "helm-deployer-controller", "landscaper-controller"}
}

// claimable reports whether a live object belongs to this item, because of an earlier life of the item or because of
// the mark of Landscaper's deployer. It returns false without an error if the object has no owner.
func (r *run) claimable(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) (bool, error) {
	if live.GetDeletionTimestamp() != nil {
		return false, waiting(o.ref, "is being deleted")
	}
	if owner, owned := ownership.OwnerOf(live); owned {
		if r.owner.SameItem(owner) {
			return true, nil
		}
		return false, r.ofAnother(ctx, o.ref, owner)
	}
	if r.isMarkedForAnother(s, live) {
		return false, markedForAnother(o.ref, live)
	}
	_, marked := live.GetLabels()[landscaperLabel]
	return marked, nil
}

// isMarkedForAnother reports whether Landscaper's deployer made the object for another item. If the inventory names
// the object, as Landscaper's provider status did, that outweighs the mark.
func (r *run) isMarkedForAnother(s *slot, live *unstructured.Unstructured) bool {
	name, marked := live.GetLabels()[landscaperLabel]
	return marked && name != r.owner.Name && live.GetUID() != s.UID
}

func markedForAnother(ref Ref, live *unstructured.Unstructured) *Error {
	return foreign(ref, fmt.Sprintf("the Landscaper deploy item %q", live.GetLabels()[landscaperLabel]))
}

// release gives up an object that was applied without a conflict because it has the same values. Fields that only
// this item has set are removed.
func (r *run) release(ctx context.Context, o *object, live *unstructured.Unstructured) error {
	if err := r.applyNothing(ctx, o.ref, live.GetUID()); err != nil {
		return err
	}
	return markedForAnother(o.ref, live)
}

// foreign returns the error for an object of another owner. That owner may release the object, so the error is not
// Permanent.
func foreign(ref Ref, owner string) *Error {
	return &Error{Ref: ref, Reason: "belongs to " + owner + " and is left alone", Class: Retry, Status: metav1.StatusReasonConflict}
}

// ofAnother returns the error for an object of another item. As long as that item exists, only a different
// configuration helps.
func (r *run) ofAnother(ctx context.Context, ref Ref, owner ownership.Owner) *Error {
	out := foreign(ref, fmt.Sprintf("deploy item %s (UID %s)", owner, owner.UID))
	if r.options.OwnerExists != nil && r.owner.SameLandscape(owner) && r.options.OwnerExists(ctx, owner) {
		out.Class = Permanent
	}
	return out
}

// updaters returns the managers whose Update entries become the item's together with the object.
func (r *run) updaters() []string {
	return append(slices.Clone(r.options.LandscaperManagers), r.owner.Manager())
}

// hasLeftovers reports whether an earlier owner, or this item under another strategy, still holds fields of the
// object. Such fields would never be removed after they leave the manifest.
func (r *run) hasLeftovers(live *unstructured.Unstructured) bool {
	if live.GetDeletionTimestamp() != nil {
		return false
	}
	ours := live.GetLabels()[landscaperLabel] == r.owner.Name && r.owner.Name != ""
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
			return false
		}
		return entry.Manager == r.owner.Manager() || ours && slices.Contains(r.options.LandscaperManagers, entry.Manager)
	})
}

// inherit renames the entries of earlier owners to this item and then applies, so that fields that are not in the
// manifest are removed.
func (r *run) inherit(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) error {
	if err := r.takeOver(ctx, o.ref, live, r.updaters()...); err != nil {
		return err
	}
	after, err := r.send(ctx, o, live.GetUID(), client.ForceOwnership)
	if err != nil {
		return err
	}
	if s.UID == "" {
		r.event(o.ref, ReasonTakenOver, "belonged to an earlier owner and is ours now")
	}
	return r.landed(o, s, after)
}
