// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Adoption decides what happens to an object that already exists and belongs to no item. An object of another item is
// never adopted. An object that Landscaper's deployer made for the same item already belongs to the item.
type Adoption string

const (
	// AdoptNever gives the object the fields of the manifest, but never deletes it. With Options.RefuseUnowned it is
	// an error.
	AdoptNever Adoption = "never"
	// AdoptIfUnowned adopts the object. When the item no longer wants it, the object is released: the item's marks
	// are removed and the object stays.
	AdoptIfUnowned Adoption = "ifUnowned"
	// AdoptAlways adopts the object as if the item had created it. It is deleted with the item.
	AdoptAlways Adoption = "always"
)

// Adoptions returns all valid values.
func Adoptions() []Adoption { return []Adoption{AdoptNever, AdoptIfUnowned, AdoptAlways} }

// dataKinds are the kinds whose deletion destroys data. Their default is AdoptNever.
var dataKinds = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:             true,
	{Kind: "PersistentVolume"}:      true,
	{Kind: "PersistentVolumeClaim"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// annotationAdopted marks an adopted object of a shared kind, so that the last of its items does not delete it.
const annotationAdopted = ownership.Prefix + "adopted"

// adoption returns the Adoption that applies to an object.
func (r *run) adoption(o *object) Adoption {
	switch {
	case o.Adoption != "":
		return o.Adoption
	case r.options.Adoption != "":
		return r.options.Adoption
	case dataKinds[o.ref.GVK().GroupKind()]:
		return AdoptNever
	}
	return AdoptIfUnowned
}

// refuses reports whether an object that belongs to no item is an error.
func (r *run) refuses(o *object) bool {
	return r.options.RefuseUnowned && r.adoption(o) == AdoptNever
}

// mayHaveWritten reads an object that is refused unless the item wrote it, for example before the process was
// stopped. It reports whether the item did. If another writer made the object, mayHaveWritten returns an error.
func (r *run) mayHaveWritten(ctx context.Context, o *object, s *slot) (bool, error) {
	if s.fresh || !r.refuses(o) {
		return false, nil
	}
	live, err := r.read(ctx, o.ref)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil || r.isSharedNow(o, live) {
		return false, err
	}
	mine, err := r.claimable(ctx, o, s, live)
	if err == nil && !mine {
		err = refusal(o.ref, live)
	}
	return mine, err
}

// refusal returns the error for an object that is not adopted.
func refusal(ref Ref, live metav1.Object) *Error {
	reason := fmt.Sprintf("exists already, belongs to %s, and is not adopted", holderOf(live))
	return &Error{Ref: ref, Reason: reason, Class: Retry, Status: metav1.StatusReasonConflict}
}

// maxHolders bounds how many managers an error names.
const maxHolders = 3

// holderOf names the maker of an object, which is its controller or else the managers that wrote it.
func holderOf(live metav1.Object) string {
	if controller := metav1.GetControllerOf(live); controller != nil {
		return controller.Kind + " " + controller.Name
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && !ownership.IsManager(entry.Manager) && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	if len(managers) == 0 {
		return "an unknown owner"
	}
	return "the field manager " + strings.Join(managers[:min(len(managers), maxHolders)], ", ")
}

// adopt records that the object existed before the item wanted it, or refuses the object.
func (r *run) adopt(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured, message string) error {
	if r.refuses(o) {
		return refusal(o.ref, live)
	}
	if s.Adopted = r.adoption(o) != AdoptAlways; s.Adopted {
		message += "; it stays when the item goes"
	}
	r.event(o.ref, ReasonAdopted, message)
	if !s.Adopted || !r.mayShare(o) {
		return nil
	}
	mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationAdopted: "true"}}}
	return r.mergeInto(ctx, o.ref.empty(), live.GetUID(), mark)
}

// giveBack removes the item's fields from an object that was applied successfully but must be refused.
func (r *run) giveBack(ctx context.Context, o *object, live *unstructured.Unstructured) error {
	if err := r.applyNothing(ctx, o.ref, live.GetUID()); err != nil {
		return err
	}
	return refusal(o.ref, live)
}

// releaseAdopted removes the item's marks from an object that existed before the item, and forgets it.
func (r *run) releaseAdopted(ctx context.Context, s *slot) error {
	live, err := r.lookToRemove(ctx, s)
	if err != nil || live == nil {
		return err
	}
	return r.unmark(ctx, s)
}

// unmark does the work of releaseAdopted for an object that has been read already.
func (r *run) unmark(ctx context.Context, s *slot) error {
	annotations := map[string]any{annotationAdopted: nil, r.owner.SharedKey(): nil}
	for _, key := range []string{ownership.AnnotationLandscape, ownership.AnnotationNamespace, ownership.AnnotationName} {
		annotations[key] = nil
	}
	labels := map[string]any{ownership.LabelItem: nil}
	err := r.merge(ctx, s, map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil && !isGone(err) && !isAnother(err) {
		return err
	}
	s.gone = true
	r.event(s.Ref(), ReasonReleased, "existed before this item and is kept")
	return nil
}
