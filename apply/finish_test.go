// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// newJob returns a Job. The status is the type of a condition, or empty.
func newJob(spec map[string]any, status string) *unstructured.Unstructured {
	out := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "shop", "name": "migrate"}, "spec": spec,
	}
	if status != "" {
		out["status"] = map[string]any{"conditions": []any{map[string]any{"type": status, "status": "True"}}}
	}
	return &unstructured.Unstructured{Object: out}
}

func TestGetFinish(t *testing.T) {
	ttl := map[string]any{"ttlSecondsAfterFinished": int64(0)}
	pod := func(policy, phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"restartPolicy": policy}, "status": map[string]any{"phase": phase},
		}}
	}
	custom := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Task"}}
	marked := custom.DeepCopy()
	marked.SetAnnotations(map[string]string{ownership.AnnotationDeletesItself: "true"})
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want Finish
	}{
		"a Job without a ttl does not disappear [F91]":                    {newJob(nil, ""), ""},
		"a Job with a ttl disappears [F91]":                               {newJob(ttl, ""), FinishExpected},
		"a complete Job is complete [F91]":                                {newJob(nil, "Complete"), FinishComplete},
		"a complete Job with a ttl is complete [F91]":                     {newJob(ttl, "Complete"), FinishComplete},
		"a failed Job without a ttl does not disappear [F91]":             {newJob(nil, "Failed"), ""},
		"a failed Job with a ttl has failed [F91]":                        {newJob(ttl, "Failed"), FinishFailed},
		"a Pod with the restartPolicy Never is complete [F91]":            {pod("Never", "Succeeded"), FinishComplete},
		"a Pod with the restartPolicy OnFailure is complete [F91]":        {pod("OnFailure", "Succeeded"), FinishComplete},
		"a Pod that runs does not disappear [F91]":                        {pod("Never", "Running"), ""},
		"a failed Pod is created again after its deletion [F91]":          {pod("Never", "Failed"), ""},
		"a Pod with the restartPolicy Always is never complete [F91]":     {pod("Always", "Succeeded"), ""},
		"an object of a custom kind does not disappear [F91]":             {custom, ""},
		"an object of a custom kind with the annotation disappears [F91]": {marked, FinishExpected},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GetFinish(tc.obj); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// fakeWatch is a Lookup for one object.
type fakeWatch struct {
	seen  observe.State
	known bool
}

func (s fakeWatch) Get(schema.GroupVersionResource, types.NamespacedName) (observe.State, bool) {
	return s.seen, s.known
}

func newJobMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	return mapper
}

func TestFinishedObjects(t *testing.T) {
	ttl := map[string]any{"ttlSecondsAfterFinished": int64(0)}
	for name, tc := range map[string]struct {
		spec    map[string]any // of the Job in the manifest
		finish  Finish         // in the inventory
		change  bool           // the manifest has changed since the last write
		options Options
		live    *unstructured.Unstructured
		want    Finish
		reads   int
		writes  int
	}{
		"a Job with a ttl that is gone is done [F91]":                                    {spec: ttl, finish: FinishExpected, want: FinishGone, reads: 1},
		"a Job with a ttl of an inventory of an earlier version is done [F91]":           {spec: ttl, finish: "", want: FinishGone, reads: 1},
		"a Job without a ttl that was seen complete is done when it is gone [F91]":       {finish: FinishComplete, want: FinishGone, reads: 1},
		"a Job that is done costs no request [F91]":                                      {spec: ttl, finish: FinishGone, want: FinishGone},
		"a Job that is done costs no request in a thorough run [F91]":                    {spec: ttl, finish: FinishGone, options: Options{Force: true}, want: FinishGone},
		"a Job with a ttl that failed and is gone has failed [F91]":                      {spec: ttl, finish: FinishFailed, want: FinishFailed, reads: 1},
		"a Job without a ttl that is deleted before it was complete runs again [F91]":    {finish: "", want: "", writes: 1},
		"a Job that is done runs again when its manifest changes [F91]":                  {spec: ttl, finish: FinishGone, change: true, want: FinishExpected, writes: 1},
		"a Job that is done runs again when the item is forced [F91]":                    {spec: ttl, finish: FinishGone, options: Options{Force: true, RecreateFinished: true}, want: FinishExpected, writes: 1},
		"a Job that was seen complete runs again when the item is forced [F91]":          {finish: FinishComplete, options: Options{Force: true, RecreateFinished: true}, want: "", writes: 1},
		"a Job that is being deleted after it finished is done [F91]":                    {spec: ttl, finish: FinishExpected, options: Options{Watched: fakeWatch{observe.State{UID: "u", Fingerprint: "k", Deleting: true}, true}}, want: FinishExpected},
		"a Job that exists is written in a thorough run [F91]":                           {spec: ttl, finish: FinishExpected, options: Options{Force: true}, live: newJob(ttl, "Complete"), want: FinishExpected, reads: 1, writes: 1},
		"a Job that another client replaced is written [F91]":                            {spec: ttl, finish: FinishComplete, live: withUID(newJob(ttl, ""), "other"), want: FinishExpected, reads: 1, writes: 1},
		"a Job with a ttl that a read finds in deletion is complete if it says so [F91]": {spec: ttl, finish: FinishExpected, live: inDeletion(newJob(ttl, "Complete")), want: FinishComplete, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApplyServer()
			desired := Desired{Object: newJob(tc.spec, "")}
			objects, err := New(s, newJobMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{desired}, false)
			if err != nil {
				t.Fatal(err)
			}
			entry := Entry{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "migrate", UID: "u", Fingerprint: "k", Hash: objects[0].hash, Finish: tc.finish}
			if tc.change {
				entry.Hash = "other"
			}
			if tc.live != nil {
				if tc.live.GetUID() == "" {
					tc.live.SetUID("u")
				}
				s.objects = map[string]*unstructured.Unstructured{"migrate": tc.live}
			}
			inv, report, err := New(s, newJobMapper(), tc.options).Apply(t.Context(), ownership.Owner{UID: "item"}, []Desired{desired}, Inventory{Entries: []Entry{entry}})
			if err != nil || !report.IsDone() {
				t.Fatal(report, err)
			}
			if len(inv.Entries) != 1 || inv.Entries[0].Finish != tc.want {
				t.Errorf("want the Finish %q, got %+v", tc.want, inv.Entries)
			}
			if len(s.read) != tc.reads || len(s.written) != tc.writes {
				t.Errorf("want %d reads and %d writes, got %q and %q", tc.reads, tc.writes, s.read, s.written)
			}
			for _, owned := range report.Owned {
				if owned.Finishes != (tc.want != "") || tc.want == FinishGone {
					t.Errorf("want the deletion to be drift only if the Job must exist, got %+v", owned)
				}
			}
			plan, err := New(s, newJobMapper(), tc.options).Plan(t.Context(), ownership.Owner{UID: "item"}, []Desired{desired}, Inventory{Entries: []Entry{entry}})
			if err != nil {
				t.Fatal(err)
			}
			if created := plan.CountChanges() > 0; tc.live == nil && created != (tc.writes > 0) && tc.options.Watched == nil {
				t.Errorf("the plan differs from the apply: %s", plan)
			}
		})
	}
}

func withUID(obj *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	obj.SetUID(uid)
	return obj
}

func inDeletion(obj *unstructured.Unstructured) *unstructured.Unstructured {
	_ = unstructured.SetNestedField(obj.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	return obj
}

func TestInventoryOfFinishedObjects(t *testing.T) {
	entry := Entry{
		APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "migrate", UID: "00000000-0000-0000-0000-000000000000",
		Fingerprint: ownership.Fingerprint("0123456789abcdefghijkl"), Hash: "0123456789abcdef",
	}
	before := Inventory{Entries: []Entry{entry}}
	entry.Finish = FinishGone
	after := Inventory{Entries: []Entry{entry}}
	data, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("an entry of a finished Job is compact [F91]", func(t *testing.T) {
		if size := len(data) - len(`{"entries":[]}`); size > 160 {
			t.Errorf("%d bytes: %s", size, data)
		}
		if before.size() != after.size() || after.size() != len(data) {
			t.Errorf("size is %d before the Job finishes, %d after, in truth %d", before.size(), after.size(), len(data))
		}
	})
	t.Run("an inventory of an earlier version is read [F91]", func(t *testing.T) {
		old, back := `{"entries":[{"v":"batch/v1","k":"Job","ns":"shop","n":"migrate","u":"u","h":"h"}]}`, Inventory{}
		if err := json.Unmarshal([]byte(old), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Entry{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "migrate", UID: "u", Hash: "h"}, back.Entries[0]); diff != "" {
			t.Error(diff)
		}
	})
}
