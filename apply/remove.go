// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// background lets the garbage collector delete dependents. The default of some kinds is to keep them.
const background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// prune deletes the objects of the inventory that are no longer desired. It is called only when all desired objects
// are there.
func (r *run) prune(ctx context.Context, desired []*object) {
	wanted, uids := map[Ref]bool{}, map[types.UID]bool{}
	for _, o := range desired {
		wanted[o.ref.id()] = true
		if s := r.book[o.ref.id()]; s != nil && s.UID != "" {
			uids[s.UID] = true
		}
	}
	orphans := []*slot{}
	for _, s := range r.all() {
		switch {
		case wanted[s.Ref().id()]:
		case uids[s.UID]:
			s.gone = true // the same object in another API group
		default:
			orphans = append(orphans, s)
		}
	}
	if len(orphans) > 0 {
		r.remove(ctx, orphans, r.options.PruneGroups)
	}
}

// remove deletes objects group by group, until it would have to wait.
func (r *run) remove(ctx context.Context, slots []*slot, groups []Group) {
	left := []*slot{}
	for _, s := range slots {
		if s.isLetGo() {
			s.gone = true
			continue
		}
		left = append(left, s)
	}
	for _, group := range groups {
		var members []*slot
		members, left = split(left, group)
		forEach(ctx, r.options.Concurrency, members, func(s *slot) {
			r.on(s.Ref(), func(s *slot) { r.note(s.Ref(), r.removeOne(ctx, s, group.ForceDelete)) })
		})
		if group.DeleteAll {
			r.removeKinds(ctx, group)
		}
		if !r.complete(ctx) {
			return
		}
	}
	for _, s := range left {
		r.report.Left = append(r.report.Left, s.Ref())
	}
}

// isLetGo reports whether the object stays in the cluster when its entry is removed.
func (s *slot) isLetGo() bool { return s.policy() == Keep || s.policy() == Ignore }

func split(slots []*slot, group Group) (members, rest []*slot) {
	for _, s := range slots {
		if group.takes(s.Ref()) {
			members = append(members, s)
		} else {
			rest = append(rest, s)
		}
	}
	return members, rest
}

// removeOne deletes one object and confirms that it is gone.
func (r *run) removeOne(ctx context.Context, s *slot, force bool) error {
	if r.isShared(s.Ref()) && !s.anyones {
		return r.removeShared(ctx, s, force)
	}
	if s.Deleting {
		return r.confirm(ctx, s, force)
	}
	if s.Adopted && !s.anyones {
		return r.releaseAdopted(ctx, s)
	}
	if !s.anyones && !r.showsAsOurs(s) {
		if ours, err := r.find(ctx, s); err != nil || !ours {
			return err
		}
	}
	err := r.beforeDelete(ctx, s)
	if err == nil {
		err = r.delete(ctx, s, "")
	}
	switch {
	case err == nil:
		s.Deleting = true
		return r.confirm(ctx, s, force)
	case isGone(err):
		r.gone(s)
		return nil
	case apierrors.IsConflict(err) || isAnother(err):
		return r.another(ctx, s, err)
	}
	return err
}

// delete asks the API server to delete exactly the entry's object. If version is not empty, only that version is
// deleted. A denial by admission is not the manifest's fault, whatever its code, because the same call may succeed
// later.
func (r *run) delete(ctx context.Context, s *slot, version string) error {
	only := client.Preconditions{UID: &s.UID}
	if version != "" {
		only.ResourceVersion = &version
	}
	err := r.client.Delete(ctx, s.Ref().empty(), only, background)
	if err == nil || isGone(err) || apierrors.IsConflict(err) || isAnother(err) {
		return err
	}
	denied := classify(s.Ref(), err, r.hide)
	if denied.Class == Permanent {
		denied.Class = Retry
	}
	return denied
}

// another finds out after a conflict which object has the name. It may be an object that the item created again
// before it was stopped.
func (r *run) another(ctx context.Context, s *slot, conflict error) error {
	known := s.UID
	s.UID = ""
	ours, err := r.find(ctx, s)
	switch {
	case err != nil || !ours:
		return err
	case s.UID == known:
		return conflict // the UID is not the reason
	}
	return waiting(s.Ref(), "is deleted next")
}

// find reports whether the object with the name belongs to the item. If not, the entry is forgotten.
func (r *run) find(ctx context.Context, s *slot) (bool, error) {
	live := metadataOf(s.Ref())
	err := r.client.Get(ctx, s.Ref().Key(), live)
	switch {
	case isGone(err):
		s.gone = true
		return false, nil
	case err != nil:
		return false, err
	}
	switch {
	case r.isOwn(live, s):
	case live.GetUID() == s.UID:
		r.letGo(s)
		return false, nil
	default:
		s.gone = true
		return false, nil
	}
	s.UID = live.GetUID()
	return true, nil
}

// confirm checks whether an object is gone after the API server accepted its deletion.
func (r *run) confirm(ctx context.Context, s *slot, force bool) error {
	live := metadataOf(s.Ref())
	err := r.client.Get(ctx, s.Ref().Key(), live)
	switch {
	case isGone(err) || err == nil && live.GetUID() != s.UID:
		r.gone(s)
		return nil
	case err != nil:
		return err
	case !s.anyones && !r.isMarked(live, s):
		r.letGo(s)
		return nil
	case live.GetDeletionTimestamp() == nil:
		s.Deleting = false
		return waiting(s.Ref(), "is deleted again")
	case force && len(live.GetFinalizers()) > 0:
		return r.strip(ctx, s)
	}
	return waiting(s.Ref(), "%s", whyStillThere(live))
}

func whyStillThere(live metav1.Object) string {
	if held := live.GetFinalizers(); len(held) > 0 {
		return fmt.Sprintf("is being deleted, held by finalizers %v", held)
	}
	return "is being deleted"
}

// gone removes the entry of a deleted object. No other function does so.
func (r *run) gone(s *slot) {
	s.gone = true
	r.count(&r.report.Deleted)
}

// strip removes the finalizers.
func (r *run) strip(ctx context.Context, s *slot) error {
	err := r.merge(ctx, s, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil && !isGone(err) && !isAnother(err) {
		return err
	}
	return waiting(s.Ref(), "is being deleted, its finalizers were removed")
}

// beforeDelete sends the changes that the manifest wants before the object is deleted.
func (r *run) beforeDelete(ctx context.Context, s *slot) error {
	if !s.hasBeforeDelete() {
		return nil
	}
	body := overlay(nil, s.PatchBeforeDelete)
	annotations := map[string]any{}
	for key, value := range s.AnnotateBeforeDelete {
		annotations[key] = value
	}
	return r.merge(ctx, s, overlay(body, map[string]any{"metadata": map[string]any{"annotations": annotations}}))
}

func (s *slot) hasBeforeDelete() bool {
	return len(s.AnnotateBeforeDelete) > 0 || len(s.PatchBeforeDelete) > 0
}

// merge sends a JSON merge patch for exactly the entry's object, under the manager for patches.
func (r *run) merge(ctx context.Context, s *slot, body map[string]any) error {
	return r.mergeInto(ctx, s.Ref().empty(), s.UID, body)
}

// mergeInto does the same as merge, and stores the answer in obj.
func (r *run) mergeInto(ctx context.Context, obj *unstructured.Unstructured, uid types.UID, body map[string]any) error {
	body = overlay(body, map[string]any{"metadata": map[string]any{"uid": string(uid)}})
	data, err := json.Marshal(body)
	if err != nil {
		return invalid(RefOf(obj), "", "the patch is not JSON: %v", err)
	}
	return r.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, data), client.FieldOwner(r.owner.PatchManager()))
}

// overlay merges one JSON object over another, recursively. It changes neither of them.
func overlay(base, top map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range top {
		below, isMap := out[key].(map[string]any)
		above, isToo := value.(map[string]any)
		if isMap && isToo {
			value = overlay(below, above)
		}
		out[key] = value
	}
	return out
}

// isGone reports whether the object or its kind does not exist.
func isGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

func metadataOf(ref Ref) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(ref.GVK())
	return out
}
