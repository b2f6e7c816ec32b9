// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// applyObject writes one object to the cluster, in as few calls as possible. s is its slot of the inventory.
func (r *run) applyObject(ctx context.Context, o *object, s *slot) error {
	s.resource = o.kind.resource
	if done, err := r.fromAfar(o, s); done || err != nil {
		return err
	}
	if s.Pending && s.Hash == o.hash && s.Key != "" || r.wasApplied(o, s) {
		return r.lookAgain(ctx, o, s)
	}
	var err error
	switch {
	case o.Policy == Immutable:
		err = r.createOnce(ctx, o, s)
	case o.Policy == Fallback && s.UID == "":
		err = r.unlessForeign(ctx, o, s)
	default:
		err = r.write(ctx, o, s)
	}
	if meta.IsNoMatchError(err) && o.kind.fromItem {
		return waiting(o.ref, "the cluster does not know %s yet", o.ref.GVK())
	}
	return err
}

// write writes the object by its strategy.
func (r *run) write(ctx context.Context, o *object, s *slot) error {
	switch {
	case s.Shared && r.mayShare(o):
		return r.writeShared(ctx, o, s)
	case s.Shared:
		s.forget() // the label names another item
	}
	switch o.Strategy {
	case Apply:
		return r.serverSide(ctx, o, s)
	case Recreate:
		return r.recreateChanged(ctx, o, s)
	case OnDelete:
		return r.createMissing(ctx, o, s)
	case Update, Patch, Merge, MergeOverwrite:
	}
	return r.replace(ctx, o, s)
}

// fromAfar reports whether a watch shows that nothing needs to be done.
func (r *run) fromAfar(o *object, s *slot) (bool, error) {
	if r.options.Seen == nil || s.UID == "" || s.Deleting {
		return false, nil
	}
	seen, known := r.options.Seen.Seen(o.kind.resource, o.ref.Key())
	switch {
	case !known || seen.UID != s.UID:
		return false, nil
	case seen.Deleting:
		return true, waiting(o.ref, isGoing)
	case s.Pending:
		return false, nil
	case r.wasApplied(o, s) && s.isLeftAs(seen.Key):
	case r.options.Force || !s.isAsWanted(o, seen.Key):
		return o.Strategy == Apply && s.Key != "" && r.postpones(o, s, nil, nil), nil
	}
	s.version = seen.ResourceVersion
	r.count(&r.report.Unchanged)
	return true, nil
}

// isGoing is the reason for waiting if an object must be deleted before it can be created.
const isGoing = "is being deleted, and is created again when it is gone"

// isAsWanted reports whether the object, which exists and has this key, needs no write.
func (s *slot) isAsWanted(o *object, key ownership.Key) bool {
	switch {
	case o.Policy == Immutable:
		return true
	case o.Strategy == OnDelete:
		return s.Hash != ""
	}
	return o.isTracked() && s.Hash == o.hash && s.Key != "" && s.Key == key
}

// lookAgain reads an object that was written but was not usable then, or that no watch shows.
func (r *run) lookAgain(ctx context.Context, o *object, s *slot) error {
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil || live.GetUID() != s.UID || !s.isLeftAs(ownership.KeyOf(live, r.owner.Manager())):
		return r.write(ctx, o, s)
	case live.GetDeletionTimestamp() != nil:
		return waiting(o.ref, isGoing)
	}
	r.count(&r.report.Unchanged)
	s.live = live
	return r.usable(o, s, live)
}

// createOnce implements the policy Immutable.
func (r *run) createOnce(ctx context.Context, o *object, s *slot) error {
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil:
		return r.create(ctx, o, s)
	case r.isOurs(live) || live.GetUID() == s.UID:
		r.count(&r.report.Unchanged)
		s.UID, s.Hash, s.Key, s.Deleting, s.live = live.GetUID(), o.hash, "", false, live
		return r.usable(o, s, live)
	}
	s.forget()
	s.live = live
	r.event(o.ref, ReasonLeftAlone, "exists already and is not ours; the policy immutable leaves it alone")
	return nil
}

// unlessForeign implements the policy Fallback for an object that is not known to belong to the item.
func (r *run) unlessForeign(ctx context.Context, o *object, s *slot) error {
	live, err := r.read(ctx, o.ref)
	if err != nil {
		return err
	}
	if live == nil || r.isOurs(live) {
		return r.write(ctx, o, s)
	}
	s.live = live
	r.event(o.ref, ReasonLeftAlone, "exists already and is not ours; the policy fallback leaves it alone")
	return nil
}

// isOurs reports whether the object carries the label of this item, in this life or an earlier one.
func (r *run) isOurs(live metav1.Object) bool {
	owner, owned := ownership.OwnerOf(live)
	return owned && r.owner.SameItem(owner)
}

// create creates an object that must not exist yet.
func (r *run) create(ctx context.Context, o *object, s *slot) error {
	body := o.Object.DeepCopy()
	if err := r.client.Create(ctx, body, client.FieldOwner(r.owner.Manager())); err != nil {
		return err
	}
	return r.landed(o, s, body)
}

// landed records the API server's answer to a write.
func (r *run) landed(o *object, s *slot, live *unstructured.Unstructured) error {
	s.live = live
	if live.GetDeletionTimestamp() != nil {
		s.Hash, s.Key = "", ""
		return waiting(o.ref, isGoing)
	}
	r.count(&r.report.Applied)
	before := s.Entry
	s.UID, s.Hash, s.Key, s.Norm, s.version = live.GetUID(), o.hash, "", o.normOf(live), live.GetResourceVersion()
	if o.isTracked() && o.Policy != Immutable {
		s.Key = ownership.KeyOf(live, r.owner.Manager())
	}
	s.changed = s.Key == "" || s.Key != before.Key || s.Hash != before.Hash
	s.PatchDue, s.Deleting = len(o.PatchAfterDeployment) > 0, false
	return r.usable(o, s, live)
}

// usable records that the object is as wanted. It returns a waiting error if later stages need something that is
// unfinished.
func (r *run) usable(o *object, s *slot, live *unstructured.Unstructured) error {
	r.options.Applied.add(o.ref.id(), state{s.UID, o.hash})
	s.Pending = false
	switch stageOf(o.ref.GVK().GroupKind(), o.kind.namespaced) {
	case stageDefinitions:
		if s.Pending = !isEstablished(live); s.Pending {
			return waiting(o.ref, "is not established yet")
		}
		meta.MaybeResetRESTMapper(r.mapper) // it may have been asked for the kind earlier
	case stageNamespaces:
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		if s.Pending = phase == string(corev1.NamespaceTerminating); s.Pending {
			return waiting(o.ref, "is being deleted")
		}
	case stageCluster, stageNamespaced, stageEnd:
	}
	return nil
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] == "Established" {
			return condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// read returns the object as it is in the cluster, or nil if it does not exist.
func (r *run) read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live := ref.empty()
	err := r.client.Get(ctx, ref.Key(), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}
