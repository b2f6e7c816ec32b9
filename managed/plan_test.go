// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/apply"
)

// newEntries returns entries of ConfigMaps.
func newEntries(names ...string) []apply.Entry {
	var out []apply.Entry
	for _, name := range names {
		out = append(out, apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name})
	}
	return out
}

func TestComputeRelocation(t *testing.T) {
	oldOne, newOne := apply.ClusterID{UID: "1", Target: "old"}, apply.ClusterID{UID: "2", Target: "new"}
	former := apply.Inventory{Cluster: &oldOne, Entries: newEntries("a")}
	for name, tc := range map[string]struct {
		inv  apply.Inventory
		at   apply.ClusterID
		want relocation
	}{
		"the first cluster": {at: oldOne, want: relocation{inventory: apply.Inventory{Cluster: &oldOne}}},
		"the first cluster of an item that never had objects": {
			inv: apply.Inventory{Empty: true}, at: oldOne,
			want: relocation{inventory: apply.Inventory{Cluster: &oldOne, Empty: true}},
		},
		"an inventory without a cluster does not move": {
			inv: apply.Inventory{Entries: newEntries("a")}, at: newOne,
			want: relocation{inventory: apply.Inventory{Entries: newEntries("a"), Cluster: &newOne}},
		},
		"the same cluster": {inv: former, at: oldOne, want: relocation{inventory: former}},
		"the same cluster by another Target": {
			inv: former, at: apply.ClusterID{UID: "1", Target: "new"},
			want: relocation{inventory: apply.Inventory{Entries: newEntries("a"), Cluster: &apply.ClusterID{UID: "1", Target: "new"}}},
		},
		"another cluster": {
			inv: former, at: newOne,
			want: relocation{inventory: apply.Inventory{Cluster: &newOne, Former: []apply.Inventory{former}}, moved: true},
		},
		"another cluster, with nothing in the old one": {
			inv: apply.Inventory{Cluster: &oldOne}, at: newOne,
			want: relocation{inventory: apply.Inventory{Cluster: &newOne}, moved: true},
		},
		"back, before the clean-up": {
			inv: apply.Inventory{Cluster: &newOne, Entries: newEntries("b"), Former: []apply.Inventory{former}}, at: oldOne,
			want: relocation{
				inventory: apply.Inventory{Cluster: &oldOne, Entries: newEntries("a"), Former: []apply.Inventory{{Cluster: &newOne, Entries: newEntries("b")}}},
				moved:     true,
			},
		},
		"the same Target with another cluster": {
			inv: former, at: apply.ClusterID{UID: "2", Target: "old"},
			want: relocation{inventory: apply.Inventory{Cluster: &apply.ClusterID{UID: "2", Target: "old"}}, moved: true, released: newEntries("a")},
		},
		"the same Target does not say it any more": {inv: former, at: apply.ClusterID{Target: "old"}, want: relocation{inventory: former}},
	} {
		t.Run(name+" [F13]", func(t *testing.T) {
			if diff := cmp.Diff(tc.want, computeRelocation(tc.inv, tc.at), cmp.AllowUnexported(relocation{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSplitRemovable(t *testing.T) {
	entry := func(component string, requires ...string) apply.Entry {
		return apply.Entry{Name: component, ComponentInfo: apply.ComponentInfo{Component: component, Requires: requires}}
	}
	for name, tc := range map[string]struct{ entries, first, later []apply.Entry }{
		"all without components": {newEntries("a", "b"), newEntries("a", "b"), nil},
		"what nothing requires": {
			[]apply.Entry{entry("a"), entry("b", "a"), entry("c", "b")},
			[]apply.Entry{entry("c", "b")},
			[]apply.Entry{entry("a"), entry("b", "a")},
		},
		"what requires each other":     {[]apply.Entry{entry("a", "b"), entry("b", "a")}, []apply.Entry{entry("a", "b"), entry("b", "a")}, nil},
		"what requires its own others": {[]apply.Entry{entry("a", "a")}, []apply.Entry{entry("a", "a")}, nil},
	} {
		t.Run(name+" [F13]", func(t *testing.T) {
			first, later := splitRemovable(tc.entries)
			if diff := cmp.Diff(tc.first, first) + cmp.Diff(tc.later, later); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanInventory(t *testing.T) {
	kept := newEntries("a")
	kept[0].Policy = apply.PolicyKeep
	old := &apply.ClusterID{UID: "old", Target: "old"}
	for name, tc := range map[string]struct {
		target  string
		release string
		want    []apply.Inventory
	}{
		"deletes in the old cluster":                      {target: "new", want: []apply.Inventory{{Cluster: old, Entries: newEntries("a")}}},
		"releases by the annotation":                      {target: "new", release: "true", want: []apply.Inventory{{Cluster: old, Entries: kept}}},
		"releases if the Target refers to a new cluster":  {target: "old", want: []apply.Inventory{{Cluster: old, Entries: kept}}},
		"does not release by another value of annotation": {target: "new", release: "no", want: []apply.Inventory{{Cluster: old, Entries: newEntries("a")}}},
	} {
		t.Run(name+" [F13]", func(t *testing.T) {
			w := newTestEnv(t)
			w.createIdentity("new", w.begin(false).Owner)
			di := w.item.DeepCopy()
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: tc.target}
			di.Annotations = map[string]string{ReleaseAnnotation: tc.release}
			inv := apply.Inventory{Cluster: old, Entries: newEntries("a")}
			_, got, err := PlanInventory(t.Context(), w.cluster, w.cluster, di, inv)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Former); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(newEntries("a"), inv.Entries); diff != "" {
				t.Errorf("the inventory was changed: %s", diff)
			}
		})
	}
}

func TestPlanInventoryWithUnknownTarget(t *testing.T) {
	t.Run("keeps what may be in the same cluster [F108]", func(t *testing.T) {
		w, ls := newTestEnv(t), newTestEnv(t)
		ls.createIdentity("landscaper", ls.begin(false).Owner)
		di := w.item.DeepCopy()
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "new"}
		_, got, err := PlanInventory(t.Context(), ls.cluster, w.cluster, di, apply.Inventory{Cluster: &apply.ClusterID{UID: "old", Target: "old"}, Entries: newEntries("a")})
		if err != nil {
			t.Fatal(err)
		}
		want := []apply.Inventory{{Cluster: &apply.ClusterID{UID: "old", Target: "old", Unverified: true}, Entries: WithKeepPolicy([]apply.Inventory{{Entries: newEntries("a")}})[0].Entries}}
		if diff := cmp.Diff(want, got.Former) + cmp.Diff(newEntries("a"), got.Entries); diff != "" {
			t.Error(diff)
		}
	})
}
