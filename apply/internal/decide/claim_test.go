// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// newExisting returns the ConfigMap after the item has applied it for the first time. The manager kubectl created it.
func newExisting() *unstructured.Unstructured {
	return liveMap("u", testOwner.FieldManager(), func(live *unstructured.Unstructured) {
		testOwner.Mark(live)
		live.SetManagedFields(append(live.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{},
		}))
	})
}

// runClaim returns the step after the first apply of an object that existed before.
func runClaim(r *Rules, adoption func(*Manifest)) Step {
	f := Facts{Record: object.Record{Entry: newEntry("", ""), IsNew: true}, Manifest: newManifest("apply", adoption)}
	return Write(r, f).HandleResponse(r, Response{Live: newExisting()})
}

func TestAdoption(t *testing.T) {
	isReported := func(s Step) bool {
		return slices.ContainsFunc(s.Facts.Events, func(e object.Event) bool { return e.Reason == object.ReasonAdopted })
	}
	for name, released := range map[string]bool{
		"an object that existed before belongs to the item if the policy is always [F29]":   false,
		"an object that existed before is released later unless the policy is always [F29]": true,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRules()
			s := runClaim(r, func(m *Manifest) { m.ReleaseAdopted = released })
			if released { // a second request marks the object
				if s.Body.GetAnnotations()[ownership.AnnotationAdopted] == "" {
					t.Errorf("%s without a mark: %v", formatStep(s), s.Body)
				}
				s = s.HandleResponse(r, Response{Live: newExisting()})
			}
			if s.Effect != "" || !s.Usable || s.Facts.Adopted != released || !isReported(s) {
				t.Errorf("%s, usable %t, adopted %t, event %t", formatStep(s), s.Usable, s.Facts.Adopted, isReported(s))
			}
		})
	}
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	for name, tc := range map[string]struct {
		ours, others *metav1.Time // the object was created at second 10
		want         bool
	}{
		"an object of another writer is adopted [F29]":                                                        {at(12), at(10), true},
		"an object of another writer is adopted in the second of its creation [F29]":                          {at(10), at(10), true},
		"an object of another writer is adopted if the API server took time to create it [F29]":               {at(10), at(8), true},
		"an object of another writer is adopted if its fields no longer show the creation [F29]":              {at(12), at(11), true},
		"an object that the item created is not adopted [F29]":                                                {at(10), at(11), false},
		"an object that the item created is not adopted if the API server took time to create it [F29]":       {at(8), at(11), false},
		"an object is adopted if the managed fields do not contain the time at which the item wrote it [F29]": {nil, at(11), true},
	} {
		t.Run(name, func(t *testing.T) {
			live := newExisting()
			live.SetCreationTimestamp(*at(10))
			fields := live.GetManagedFields()
			fields[0].Time, fields[1].Time = tc.ours, tc.others
			live.SetManagedFields(fields)
			f := Facts{Record: object.Record{Entry: newEntry("", ""), IsNew: true}, Manifest: newManifest("apply", func(m *Manifest) { m.ReleaseAdopted = true })}
			s := Write(newRules(), f).HandleResponse(newRules(), Response{Live: live})
			if got := s.Effect == EffectApply && s.Body.GetAnnotations()[ownership.AnnotationAdopted] != ""; got != tc.want {
				t.Errorf("%s, adopted %t, want %t", formatStep(s), got, tc.want)
			}
		})
	}
	t.Run("an object that existed before is left without the fields of the item if it is refused [F29]", func(t *testing.T) {
		r := newRules()
		s := runClaim(r, withRejectUnowned)
		if s.Effect != EffectApply || s.Body.Object["data"] != nil || len(s.Body.GetLabels()) > 0 || s.UID != "u" {
			t.Fatalf("the item leaves fields in the object: %s of %v", formatStep(s), s.Body)
		}
		if end := s.HandleResponse(r, Response{Live: newExisting()}); end.Err == nil || end.Facts.Adopted {
			t.Errorf("want an error, got %s", formatStep(end))
		}
	})
}

func TestRemovalOfAdoptedObject(t *testing.T) {
	t.Run("an adopted object is kept without the marks of the item [F29]", func(t *testing.T) {
		f := Facts{Record: object.Record{Entry: newEntry("u", "")}}
		f.Adopted = true
		r := newRules()
		s := Remove(r, f).HandleResponse(r, Response{Live: newExisting()})
		if s.Effect != EffectMerge {
			t.Fatalf("%s, want a merge", formatStep(s))
		}
		want := map[string]any{"metadata": map[string]any{
			"uid": "u", "labels": map[string]any{ownership.LabelItem: nil},
			"annotations": map[string]any{
				ownership.AnnotationLandscape: nil, ownership.AnnotationNamespace: nil, ownership.AnnotationName: nil,
				ownership.AnnotationAdopted: nil, testOwner.GetOwnerAnnotationKey(): nil,
			},
		}}
		if diff := cmp.Diff(want, s.Patch); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if end := s.HandleResponse(r, Response{Live: newExisting()}); end.Effect != "" || !end.Facts.Gone {
			t.Errorf("%s, gone %t", formatStep(end), end.Facts.Gone)
		}
	})
	created := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		return liveMap("u", testOwner.FieldManager(), func(live *unstructured.Unstructured) {
			testOwner.Mark(live)
			change(live)
		})
	}
	for name, tc := range map[string]struct {
		uid  types.UID // the UID in the inventory
		live *unstructured.Unstructured
		want Effect
	}{
		"an object that the item created in the place of an adopted object is deleted [F29]": {
			"former", created(func(*unstructured.Unstructured) {}), EffectDelete,
		},
		"an object of another writer in the place of an adopted object is kept [F29]": {"former", newExisting(), EffectMerge},
		"an object that is marked as adopted is kept, whatever its UID [F29]": {
			"former", created(func(live *unstructured.Unstructured) {
				live.SetAnnotations(markAdopted(live).GetAnnotations())
			}), EffectMerge,
		},
		"an adopted object is kept without its mark [F29]":      {"u", created(func(*unstructured.Unstructured) {}), EffectMerge},
		"an adopted object is kept if its UID is unknown [F29]": {"", created(func(*unstructured.Unstructured) {}), EffectMerge},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Record: object.Record{Entry: newEntry(tc.uid, "")}}
			f.Adopted = true
			r := newRules()
			if s := Remove(r, f).HandleResponse(r, Response{Live: tc.live}); s.Effect != tc.want || s.UID != "u" && s.Effect == EffectDelete {
				t.Errorf("%s, want %s", formatStep(s), tc.want)
			}
		})
	}
}
