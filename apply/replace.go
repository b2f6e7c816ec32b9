// SPDX-License-Identifier: Apache-2.0

package apply

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// decideReplace is called after reading an object whose strategy computes the new state from the current one. The write
// contains the resourceVersion that was read, so it fails if the object has changed in the meantime.
func decideReplace(r rules, k known) step {
	o, live := k.want, k.live
	switch {
	case live == nil:
		k.forget()
		return k.create(r, decideCreated)
	case r.isSharedNow(k):
		return decideShare(r, k)
	case live.GetUID() != k.UID:
		k.forget()
	}
	mine, err := r.claimable(k)
	if err != nil {
		return decideRival(r, k, err, decideReplace)
	}
	owner, owned := ownership.OwnerOf(live)
	switch {
	case owned && owner.UID == r.owner.UID || k.UID != "":
	case mine:
		k = inherit(r, k, live)
		k.note(ReasonTakenOver, k.takenOver())
	case r.refuses(o):
		return k.fail(refusal(o.ref, live))
	default:
		k = adopt(r, k, "already existed and had no owner")
	}
	wanted := o.becomes(k.Entry, live)
	if k.Adopted {
		wanted = markedAdopted(wanted)
	}
	if ownership.IsReleased(wanted) {
		wanted = wanted.DeepCopy()
		unstructured.RemoveNestedField(wanted.Object, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	switch {
	case equality.Semantic.DeepEqual(live.Object, wanted.Object):
		if k.Hash != o.hash {
			k.Norm = ""
		}
		k.UID, k.Hash, k.Key = live.GetUID(), o.hash, ""
		return k.unchanged()
	case k.UID == live.GetUID() && r.mayAsk(k):
		return k.ask(live, wanted, func(r rules, k known) step { return decideUpdate(r, k, wanted) })
	}
	return decideUpdate(r, k, wanted)
}

// decideUpdate sends the new state of the object.
func decideUpdate(r rules, k known, wanted *unstructured.Unstructured) step {
	out := step{known: k, effect: effectUpdate, next: decideReplaced, body: wanted, manager: r.owner.Manager()}
	if k.want.Strategy == Patch {
		version := map[string]any{"metadata": map[string]any{"resourceVersion": k.live.GetResourceVersion()}}
		out.strict, out.effect, out.patch = true, effectPatch, jsondiff.Overlay(jsondiff.MergePatch(k.live.Object, wanted.Object), version)
	}
	return out
}

func decideReplaced(r rules, k known) step {
	switch {
	case k.result == resultConflict || k.result == resultMismatch || k.result == resultGone && apierrors.IsNotFound(k.err):
		return k.wait("changed while it was written")
	case k.result == resultImmutable && r.Recreate && k.UID == k.live.GetUID() && r.isOwn(k.live, k.Entry):
		return decideDelete(r, k, isReplaced)
	}
	return decideLanded(r, k)
}

// readsFirst reports whether the object must be read before it is written, because its strategy computes the new state
// from the current one.
func (o *object) readsFirst() bool { return !o.isTracked() && o.Strategy != OnDelete }

// becomes returns the new state of a live object. After a change of the manifest, the strategy determines the complete
// object. As long as the manifest stays the same, becomes corrects only the fields of the manifest, and keeps fields
// that other writers have added.
func (o *object) becomes(e Entry, live *unstructured.Unstructured) *unstructured.Unstructured {
	if e.UID != live.GetUID() || e.Hash != o.hash {
		return outcome(o, live)
	}
	if e.Norm != "" && e.Norm == o.norm(live) {
		return live
	}
	return o.laidOver(live)
}

// laidOver returns a copy of the live object in which the fields of the manifest are set.
func (o *object) laidOver(live *unstructured.Unstructured) *unstructured.Unstructured {
	want := o.Object
	switch o.Strategy {
	case Merge:
		want = outcome(o, live)
	case Apply, Recreate, OnDelete, Update, Patch, MergeOverwrite:
		want = want.DeepCopy()
		retain(want, live)
	}
	out, _ := jsondiff.Lay(live.Object, want.Object).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// normOf returns the value of Entry.Norm for an object as the API server stored it. It returns "" if the stored object
// matches the manifest. The stored object may differ from the manifest, for example because the API server rewrote a
// quantity, dropped a zero value, or called a webhook that changed a field.
func (o *object) normOf(stored *unstructured.Unstructured) string {
	if !o.readsFirst() || equality.Semantic.DeepEqual(o.laidOver(stored).Object, stored.Object) {
		return ""
	}
	return o.norm(stored)
}

// norm returns a hash of a live object, restricted to the fields that the manifest contains.
func (o *object) norm(live *unstructured.Unstructured) string {
	return digest(jsondiff.Cut(live.Object, o.Object.Object))
}

// outcome returns the complete object that the strategy computes from the manifest and the live object.
func outcome(o *object, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.Object.DeepCopy()
	switch o.Strategy {
	case Merge:
		out.Object = jsondiff.Fill(live.DeepCopy().Object, out.Object)
		// The strategy would keep the labels and annotations of an earlier item with the same name.
		if owner, owned := ownership.OwnerOf(o.Object); owned {
			owner.Stamp(out)
		}
	case MergeOverwrite:
		out.Object = jsondiff.Overlay(live.DeepCopy().Object, out.Object)
		keepFilled(out, live)
	case Apply, Recreate, OnDelete, Update, Patch:
		retain(out, live)
	}
	return out
}

// keptFields lists the fields that keep their current values when an object is replaced, unless the manifest contains a
// value. These fields are immutable or set by the API server. The key of the map is a kind. The empty key stands for all
// kinds.
var keptFields = map[string][][]string{
	"":        {{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}, {"status"}},
	"Job":     {{"spec", "selector"}},
	"Service": {{"spec", "clusterIP"}},
}

// generatedLabels are the labels that the API server adds to the template of a Job.
var generatedLabels = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

// retain copies fields from the live object to obj if obj does not contain them: the keptFields, and the filledFields
// that other managers have set. A value that obj contains is sent, so that the API server reports it if the field is
// immutable.
func retain(obj, live *unstructured.Unstructured) {
	for _, kind := range []string{"", obj.GetKind()} {
		for _, path := range keptFields[kind] {
			keep(obj, live, path...)
		}
	}
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		for _, label := range generatedLabels {
			keep(obj, live, "spec", "template", "metadata", "labels", label)
		}
	case schema.GroupKind{Kind: "Service"}:
		if fieldAt(obj, "spec", "clusterIP") == fieldAt(live, "spec", "clusterIP") {
			keep(obj, live, "spec", "clusterIPs")
		}
	}
	keepFilled(obj, live)
}

// keep copies a field from the live object to obj if obj does not contain it. An empty text counts as absent.
func keep(obj, live *unstructured.Unstructured, path ...string) {
	given, found, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if found && given != "" {
		return
	}
	if value, found, _ := unstructured.NestedFieldCopy(live.Object, path...); found {
		_ = unstructured.SetNestedField(obj.Object, value, path...) // if a parent is not a map, the API server reports an error
	}
}

// fieldAt returns a text at a path, or "".
func fieldAt(obj *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(obj.Object, path...)
	return text
}
