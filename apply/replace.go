// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// replace writes an object by one of the strategies that read first. Its writes are locked by resourceVersion.
func (r *run) replace(ctx context.Context, o *object, s *slot) error {
	live, err := r.read(ctx, o.ref)
	if err != nil {
		return err
	}
	if live == nil {
		s.forget()
		return r.create(ctx, o, s)
	}
	if r.isSharedNow(o, live) {
		return r.share(ctx, o, s, live)
	}
	if err := r.mayReplace(ctx, o, s, live); err != nil {
		return err
	}
	wanted := o.becomes(s, live)
	if equality.Semantic.DeepEqual(wanted.Object, live.Object) {
		r.count(&r.report.Unchanged)
		if s.Hash != o.hash {
			s.Norm = ""
		}
		s.UID, s.Hash, s.Key, s.Deleting, s.live = live.GetUID(), o.hash, "", false, live
		return r.usable(o, s, live)
	}
	if s.UID == live.GetUID() && r.postpones(o, s, live, wanted) {
		s.live = live
		return nil
	}
	err = r.put(ctx, o, live, wanted)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return waiting(o.ref, "changed while it was written")
	case r.options.Recreate && s.UID == live.GetUID() && r.isOwn(live, s) && isImmutable(err):
		return r.recreate(ctx, o, s, "is replaced, since a field changed that is immutable")
	case err != nil:
		return err
	}
	return r.landed(o, s, wanted)
}

// mayReplace protects objects of others, and records when an object becomes the item's.
func (r *run) mayReplace(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) error {
	if live.GetUID() != s.UID {
		s.forget()
	}
	mine, err := r.claimable(ctx, o, s, live)
	if err != nil {
		return err
	}
	owner, owned := ownership.OwnerOf(live)
	switch {
	case owned && owner.UID == r.owner.UID || s.UID != "":
	case mine:
		r.event(o.ref, ReasonTakenOver, "belonged to an earlier owner and is ours now")
	default:
		return r.adopt(ctx, o, s, live, "existed already and had no owner")
	}
	return nil
}

// put sends the wanted object, and replaces wanted by what the API server stored.
func (r *run) put(ctx context.Context, o *object, live, wanted *unstructured.Unstructured) error {
	update := &client.UpdateOptions{FieldManager: r.owner.Manager()}
	patch := &client.PatchOptions{FieldManager: r.owner.Manager()}
	if r.dry {
		client.DryRunAll.ApplyToUpdate(update)
		client.DryRunAll.ApplyToPatch(patch)
	}
	if o.Strategy != Patch {
		return r.client.Update(ctx, wanted, update)
	}
	changes := difference(live.Object, wanted.Object)
	changes = overlay(changes, map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()}})
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, wanted, client.RawPatch(types.MergePatchType, data), patch)
}

// outcome returns what a live object becomes after the manifest changed.
func outcome(o *object, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.Object.DeepCopy()
	switch o.Strategy {
	case Merge:
		out.Object = fill(live.DeepCopy().Object, out.Object)
		stamp(out, o.Object)
	case MergeOverwrite:
		out.Object = overlay(live.DeepCopy().Object, out.Object)
	case Apply, Recreate, OnDelete, Update, Patch:
		retain(out, live)
	}
	return out
}

// stamp copies the owner's marks from one object to another. fill would not do so over the marks of an earlier life.
func stamp(obj, from *unstructured.Unstructured) {
	if owner, owned := ownership.OwnerOf(from); owned {
		owner.Stamp(obj)
	}
}

// fill adds what is missing or zero. Existing lists stay as they are.
func fill(base, more map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, value := range more {
		have, exists := out[key]
		below, isMap := have.(map[string]any)
		above, isToo := value.(map[string]any)
		switch {
		case isMap && isToo:
			out[key] = fill(below, above)
		case !exists || isZero(have):
			out[key] = value
		}
	}
	return out
}

func isZero(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// kept lists the fields that a replaced object keeps from the cluster, because the API server sets them or they are
// immutable.
var kept = map[string][][]string{
	"":               {{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}, {"status"}},
	"Job":            {{"spec", "selector"}, {"spec", "template", "metadata", "labels"}},
	"Service":        {{"spec", "clusterIP"}, {"spec", "clusterIPs"}},
	"ServiceAccount": {{"secrets"}},
}

// always contains the kinds whose fields are kept even if the manifest differs, because they are immutable.
var always = map[string]bool{"Job": true, "Service": true}

// retain copies the fields of kept. In all other cases the manifest wins.
func retain(obj, live *unstructured.Unstructured) {
	for _, kind := range []string{"", obj.GetKind()} {
		for _, path := range kept[kind] {
			_, given, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
			value, found, _ := unstructured.NestedFieldCopy(live.Object, path...)
			if found && (!given || always[kind]) {
				_ = unstructured.SetNestedField(obj.Object, value, path...) // a parent that is not a map is reported by the API server
			}
		}
	}
}

// difference returns the JSON merge patch from one object to another.
func difference(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for key := range from {
		if _, keep := to[key]; !keep {
			out[key] = nil
		}
	}
	for key, want := range to {
		have, exists := from[key]
		below, isMap := have.(map[string]any)
		above, isToo := want.(map[string]any)
		switch {
		case exists && equality.Semantic.DeepEqual(have, want):
		case isMap && isToo:
			out[key] = difference(below, above)
		default:
			out[key] = want
		}
	}
	return out
}
