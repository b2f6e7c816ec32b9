// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func TestInventoryIsCompact(t *testing.T) {
	full := Inventory{Entries: []Entry{{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		UID: "00000000-0000-0000-0000-000000000000", Fingerprint: ownership.Fingerprint("0123456789abcdefghijkl"), Hash: "0123456789abcdef",
	}}}
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(data) - len(`{"entries":[]}`); size > 150 {
		t.Errorf("%d bytes: %s", size, data)
	}
	empty := Inventory{Entries: []Entry{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}}
	if empty.size() != full.size() || full.size() != len(data) {
		t.Errorf("size is %d before the write, %d after, in truth %d", empty.size(), full.size(), len(data))
	}
	back := Inventory{}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, back); diff != "" {
		t.Error(diff)
	}
}

func TestTrackerKeepsOneEntryPerObject(t *testing.T) {
	inv := Inventory{Entries: []Entry{
		{APIVersion: "v1", Kind: "B", Name: "b"},
		{APIVersion: "apps/v1", Kind: "A", Name: "a"},
		{APIVersion: "apps/v2", Kind: "A", Name: "a", UID: "u"},
	}}
	want := Inventory{Entries: []Entry{inv.Entries[2], inv.Entries[0]}}
	if diff := cmp.Diff(want, newTracker(inv).inventory()); diff != "" {
		t.Error(diff)
	}
}

func TestGroupsMatch(t *testing.T) {
	refs := []Ref{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: "namespaced"},
		{APIVersion: "v1", Kind: "Node", Name: "cluster"},
		{APIVersion: "v1", Kind: "Namespace", Name: "namespace"},
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "definition"},
	}
	custom := func(t ResourceType) DeletionGroup { return DeletionGroup{Resources: []ResourceType{t}} }
	for name, c := range map[string]struct {
		group DeletionGroup
		want  []string
	}{
		"namespaced":  {DeletionGroup{Type: GroupNamespaced}, []string{"namespaced"}},
		"cluster":     {DeletionGroup{Type: GroupCluster}, []string{"cluster", "namespace"}},
		"definitions": {DeletionGroup{Type: GroupDefinitions}, []string{"definition"}},
		"empty":       {DeletionGroup{Type: GroupEmpty}, nil},
		"kind":        {custom(ResourceType{APIVersion: "v1", Kind: "ConfigMap"}), []string{"namespaced"}},
		"version":     {custom(ResourceType{APIVersion: "v2", Kind: "ConfigMap"}), nil},
		"name":        {custom(ResourceType{APIVersion: "v1", Kind: "Node", Names: []string{"other", "cluster"}}), []string{"cluster"}},
		"namespace":   {custom(ResourceType{APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{"y"}}), nil},
		"elsewhere":   {DeletionGroup{Engine: &Engine{}, Resources: []ResourceType{{APIVersion: "v1", Kind: "Node"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, ref := range refs {
				if c.group.matches(ref) {
					got = append(got, ref.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, ref := range refs {
		taken := 0
		for _, group := range DefaultDeletionGroups() {
			if group.matches(ref) {
				taken++
			}
		}
		if taken != 1 {
			t.Errorf("%s is in %d default groups", ref, taken)
		}
	}
}

func TestNormalizeMergesStringData(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": "1"}, "data": map[string]any{"a": "eA==", "b": "eA=="},
		"metadata": map[string]any{"name": "s", "creationTimestamp": nil, "uid": "u", "resourceVersion": "1", "managedFields": []any{}},
	}}
	normalizeManifest(obj)
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "MQ==", "b": "eA=="}, "metadata": map[string]any{"name": "s"}}
	if diff := cmp.Diff(want, obj.Object); diff != "" {
		t.Error(diff)
	}
}

func TestStringDataMustBeText(t *testing.T) {
	for name, tc := range map[string]struct {
		stringData any
		want       []string
	}{
		"text":    {stringData: map[string]any{"a": "1"}},
		"null":    {stringData: nil},
		"objects": {stringData: map[string]any{"b": map[string]any{"secret": "x"}, "a": int64(1), "c": "1"}, want: []string{".stringData.a", ".stringData.b"}},
		"a text":  {stringData: "secret", want: []string{".stringData"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": tc.stringData,
			}}
			normalizeManifest(obj)
			p := &preparer{}
			p.checkStringData(&desiredObject{Desired: Desired{Object: obj}, ref: ToRef(obj)})
			var got []string
			for _, one := range p.errs {
				got = append(got, one.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForEachIsBounded(t *testing.T) {
	var now, most, all atomic.Int64
	forEach(t.Context(), 3, make([]int, 50), func(int, int) {
		for n := now.Add(1); ; {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		all.Add(1)
		now.Add(-1)
	})
	if most.Load() > 3 || all.Load() != 50 {
		t.Errorf("%d at a time, %d in all", most.Load(), all.Load())
	}
}

func TestForEachVisitsEachElementOnce(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e"}
	visits := make([]atomic.Int64, len(list))
	forEach(t.Context(), 2, list, func(i int, one string) {
		if list[i] != one {
			t.Errorf("index %d comes with %s", i, one)
		}
		visits[i].Add(1)
	})
	for i := range visits {
		if n := visits[i].Load(); n != 1 {
			t.Errorf("%d visits of %s, want one", n, list[i])
		}
	}
}

func TestForEachEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	forEach(ctx, 1, make([]int, 50), func(int, int) {
		if calls.Add(1) == 2 {
			cancel()
		}
	})
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls, want none after the context has ended", n)
	}
}

// TestListOwned checks that Owned leaves out objects whose changes a watch cannot detect. It also checks that the key
// of an object with the strategy onDelete is empty, because only the deletion of such an object counts as drift.
func TestListOwned(t *testing.T) {
	e := func(name string, change func(*Entry)) Entry {
		out := Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, UID: types.UID(name), Fingerprint: "key", Hash: "hash"}
		change(&out)
		return out
	}
	inv := Inventory{Entries: []Entry{
		e("tracked", func(*Entry) {}),
		e("deleting", func(e *Entry) { e.Deleting = true }),
		e("on-delete", func(e *Entry) { e.OnDelete = true }),
		e("untracked", func(e *Entry) { e.Fingerprint = "" }),
		e("not-written", func(e *Entry) { e.OnDelete, e.Fingerprint, e.Hash = true, "", "" }),
	}}
	got := map[string]ownership.Fingerprint{}
	for _, o := range New(nil, newConfigMapMapper(), Options{}).ListOwned(inv) {
		got[o.Object.Name] = o.Fingerprint
	}
	if diff := cmp.Diff(map[string]ownership.Fingerprint{"tracked": "key", "on-delete": ""}, got); diff != "" {
		t.Error(diff)
	}
}

// TestListsPassSettingsToItems checks that the items of a list have the settings of the list.
func TestListsPassSettingsToItems(t *testing.T) {
	item := func(name string) any { return manifest("ConfigMap", name, nil).Object.Object }
	list := manifest("List", "l", map[string]any{"items": []any{item("a"), item("b")}})
	list.Policy, list.Strategy, list.Component = PolicyKeep, StrategyUpdate, "web"
	objects, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{list}, false)
	if err != nil || len(objects) != 2 {
		t.Fatal(objects, err)
	}
	for _, o := range objects {
		if o.Policy != PolicyKeep || o.Strategy != StrategyUpdate || o.Component != "web" {
			t.Errorf("%+v", o.Desired)
		}
	}
}

func TestListsAreFlattened(t *testing.T) {
	item := func(name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "shop", "name": name}}
	}
	list := manifest("List", "l", map[string]any{"items": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{item("a"), item("b")}}, manifest("ConfigMap", "c", nil).Object.Object,
	}})
	t.Run("items of a list in a list get its kind [F102]", func(t *testing.T) {
		objects, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{list}, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			got = append(got, o.ref.String())
		}
		if diff := cmp.Diff([]string{"ConfigMap shop/a", "ConfigMap shop/b", "ConfigMap shop/c"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an item that is not an object is an error with its place [F102]", func(t *testing.T) {
		wrong := manifest("List", "l", map[string]any{"items": []any{map[string]any{"items": []any{"x"}}}})
		_, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{wrong}, false)
		if want := "List shop/l: items[0].items[0] must be an object"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// TestAddDefinitions checks that the kind of a CustomResourceDefinition is not known if the policy of the definition
// prevents the engine from writing it.
func TestAddDefinitions(t *testing.T) {
	for policy, want := range map[Policy]int{PolicyManage: 1, PolicyKeep: 1, PolicyFallback: 1, PolicyImmutable: 1, PolicyIgnore: 0, PolicyRetain: 0} {
		d := manifest("CustomResourceDefinition", "things.example.com", map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1",
			"spec":       map[string]any{"group": "example.com", "names": map[string]any{"kind": "Thing", "plural": "things"}, "versions": []any{map[string]any{"name": "v1"}}},
		})
		d.Policy = policy
		known := &kinds{defined: map[schema.GroupVersionKind]kind{}}
		if known.addDefinitions([]Desired{d}); len(known.defined) != want {
			t.Errorf("%s: %d kinds, want %d", policy, len(known.defined), want)
		}
	}
}

func TestListMoves(t *testing.T) {
	there := &ClusterID{UID: "1", Target: "there"}
	entry := func(name string, policy Policy) Entry {
		return Entry{APIVersion: "v1", Kind: "ConfigMap", Name: name, Policy: policy}
	}
	inv := Inventory{
		Entries: []Entry{entry("here", PolicyManage)},
		Former: []Inventory{
			{Cluster: there, Entries: []Entry{
				entry("default", ""), entry("kept", PolicyKeep), entry("ignored", PolicyIgnore), entry("fallback", PolicyFallback),
				{APIVersion: "v1", Kind: "ConfigMap", Name: "adopted", Adopted: true},
			}},
			{Entries: []Entry{entry("nowhere", PolicyManage)}},
		},
	}
	ref := func(name string) Ref { return Ref{APIVersion: "v1", Kind: "ConfigMap", Name: name} }
	want := []Move{{From: *there, Objects: []Ref{ref("default"), ref("fallback")}, Released: 3}}
	if diff := cmp.Diff(want, listMoves(inv)); diff != "" {
		t.Errorf("[F13] %s", diff)
	}
}

func TestPlanDescribesMoves(t *testing.T) {
	ref := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		plan Plan
		want string
	}{
		"none": {Plan{Unchanged: 1}, "0 to do, 1 unchanged\n"},
		"deletions and releases": {
			Plan{Changes: []Change{{Action: ActionCreate, Ref: ref}}, Moves: []Move{{From: ClusterID{UID: "1", Target: "old"}, Objects: []Ref{ref}, Released: 2}}},
			"create ConfigMap shop/web\nleave the cluster 1 of Target old\n  delete ConfigMap shop/web\n  release 2 objects\n4 to do, 0 unchanged\n",
		},
	} {
		t.Run(name+" [F13]", func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.plan.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
