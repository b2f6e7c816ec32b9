// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// existing returns the ConfigMap after the item has applied it for the first time. The manager kubectl created it.
func existing() *unstructured.Unstructured {
	return liveMap("u", me.Manager(), func(live *unstructured.Unstructured) {
		me.Stamp(live)
		live.SetManagedFields(append(live.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{},
		}))
	})
}

// meet returns the step after the first apply of an object that existed before.
func meet(options Options, adoption Adoption) step {
	o := desiredMap(Manage, Apply)
	o.Adoption = adoption
	k := known{entryState: entryState{Entry: Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, fresh: true}, want: o}
	r := rules{Options: &options, owner: me}
	return decideApply(r, k).after(r, existing(), nil)
}

func TestAdoption(t *testing.T) {
	adopted := func(s step) bool {
		return slices.ContainsFunc(s.known.events, func(e Event) bool { return e.Reason == ReasonAdopted })
	}
	for adoption, kept := range map[Adoption]bool{AdoptAlways: false, AdoptIfUnowned: true, AdoptNever: true} {
		t.Run("keeps what existed before, unless the policy is always: "+string(adoption)+" [F29]", func(t *testing.T) {
			s := meet(Options{}, adoption)
			if kept { // a second request marks the object
				if s.body.GetAnnotations()[ownership.AnnotationAdopted] == "" {
					t.Errorf("%s without a mark: %v", summary(s), s.body)
				}
				s = s.after(rules{Options: &Options{}, owner: me}, existing(), nil)
			}
			if s.effect != "" || !s.usable || s.known.Adopted != kept || !adopted(s) {
				t.Errorf("%s, usable %t, adopted %t, event %t", summary(s), s.usable, s.known.Adopted, adopted(s))
			}
		})
	}
	for adoption, refused := range map[Adoption]bool{AdoptAlways: false, AdoptIfUnowned: false, AdoptNever: true} {
		t.Run("is an error if the options require it and the policy is never: "+string(adoption)+" [F29]", func(t *testing.T) {
			options := Options{RefuseUnowned: true}
			s := meet(options, adoption)
			if gaveUp := s.effect == effectApply && s.body.Object["data"] == nil; gaveUp != refused {
				t.Fatalf("%s of %v", summary(s), s.body)
			}
			if !refused {
				return
			}
			if fields := s.body.GetLabels(); len(fields) > 0 || s.uid != "u" {
				t.Errorf("the item leaves fields in the object %s: %v", s.uid, s.body)
			}
			if end := s.after(rules{Options: &options, owner: me}, existing(), nil); end.err == nil || end.known.Adopted {
				t.Errorf("%s", summary(end))
			}
		})
	}
}

func TestAdoptedObjectIsReleased(t *testing.T) {
	t.Run("is kept without the marks of the item [F29]", func(t *testing.T) {
		k := known{entryState: entryState{Entry: Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u", Adopted: true}}}
		r := rules{Options: &Options{}, owner: me}
		s := decideRemove(r, k).after(r, existing(), nil)
		if s.effect != effectMerge {
			t.Fatalf("%s, want a merge", summary(s))
		}
		want := map[string]any{"metadata": map[string]any{
			"uid": "u", "labels": map[string]any{ownership.LabelItem: nil},
			"annotations": map[string]any{
				ownership.AnnotationLandscape: nil, ownership.AnnotationNamespace: nil, ownership.AnnotationName: nil,
				ownership.AnnotationAdopted: nil, me.SharedKey(): nil,
			},
		}}
		if diff := cmp.Diff(want, s.patch); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if end := s.after(r, existing(), nil); end.effect != "" || !end.known.gone {
			t.Errorf("%s, gone %t", summary(end), end.known.gone)
		}
	})
}
