// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// unchangedLookup is a Lookup for the objects of the function `newDeployed`. It shows all of them as unchanged.
type unchangedLookup struct{}

func (unchangedLookup) Get(_ schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool) {
	return observe.State{UID: types.UID(name.Name), Fingerprint: "key"}, true
}

// BenchmarkApply measures a call of Apply for objects that have not changed. Such a call sends no requests, so the
// benchmark measures only the engine itself.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		b.Run(fmt.Sprintf("unchanged-%d", n), func(b *testing.B) {
			desired, inv := newDeployed(b, n)
			engine := New(nil, newConfigMapMapper(), Options{Watched: unchangedLookup{}})
			for b.Loop() {
				out, report, err := engine.Apply(b.Context(), ownership.Owner{UID: "item"}, desired, inv)
				if err != nil || report.Unchanged != n || len(out.Entries) != n {
					b.Fatal(report, err)
				}
			}
		})
	}
}

func newConfigMapMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return mapper
}

// newDeployed returns n desired objects and the inventory that results from applying them.
func newDeployed(tb testing.TB, n int) ([]Desired, Inventory) {
	desired, inv := []Desired{}, Inventory{}
	for i := range n {
		name := fmt.Sprintf("c-%04d", i)
		desired = append(desired, Desired{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": name},
			"data": map[string]any{"key": "value", "other": "value"},
		}}})
		inv.Entries = append(inv.Entries, Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, UID: types.UID(name), Fingerprint: "key"})
	}
	objects, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(tb.Context(), desired, false)
	if err != nil {
		tb.Fatal(err)
	}
	for i, o := range objects {
		inv.Entries[i].Hash = o.hash
	}
	return desired, inv
}

// TestApplyLeavesTheInventory checks that the inventory stays the same if no object has changed, because a changed
// inventory would cause a write to the item.
func TestApplyLeavesTheInventory(t *testing.T) {
	desired, inv := newDeployed(t, 20)
	checkpoint := false
	engine := New(nil, newConfigMapMapper(), Options{Watched: unchangedLookup{}, Checkpoint: func(_ context.Context, _ Inventory) error { checkpoint = true; return nil }})
	out, _, err := engine.Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
	if err != nil || checkpoint {
		t.Fatal(err, checkpoint)
	}
	if diff := cmp.Diff(inv, out); diff != "" {
		t.Error(diff)
	}
}
