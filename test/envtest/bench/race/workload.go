// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/controlplane"
)

// These constants define the amount of work and its concurrency.
const (
	// Items is the number of items in each leg.
	Items = 20
	// Objects is the number of objects of each item.
	Objects = 50
	// AtOnce is the number of items that are processed concurrently.
	AtOnce = 4
	// Concurrency is the number of objects of an item that are written concurrently. Contenders that cannot write
	// concurrently ignore this number.
	Concurrency = 16
)

// Item is a deploy item with its objects. A contender may change the objects.
type Item struct {
	Owner   ownership.Owner
	Objects []*unstructured.Unstructured
}

// Workload is the part of the cluster that a contender uses in its turn: a namespace and the items.
type Workload struct {
	ControlPlane *controlplane.ControlPlane
	Namespace    string

	items  int
	owners []ownership.Owner
	client client.WithWatch
}

// newWorkload creates a namespace for the given number of items.
func newWorkload(ctx context.Context, cp *controlplane.ControlPlane, cl client.WithWatch, items int) (*Workload, error) {
	ns := &corev1.Namespace{}
	ns.GenerateName = "race-"
	if err := cl.Create(ctx, ns); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	f := &Workload{ControlPlane: cp, Namespace: ns.Name, items: items, client: cl}
	for i := range items {
		f.owners = append(f.owners, ownership.Owner{
			UID: types.UID(uuid.NewString()), Landscape: "landscape", Namespace: ns.Name, Name: fmt.Sprintf("item-%02d", i),
		})
	}
	return f, nil
}

// newItems returns the desired state of all items. If changed is true, the first object of each item differs.
func (f *Workload) newItems(changed bool) []Item {
	out := make([]Item, f.items)
	for i, owner := range f.owners {
		out[i].Owner = owner
		for j := range Objects {
			revision := "one"
			if changed && j == 0 {
				revision = "two"
			}
			out[i].Objects = append(out[i].Objects, configMap(f.Namespace, fmt.Sprintf("%s-%02d", owner.Name, j), revision))
		}
	}
	return out
}

func configMap(namespace, name, revision string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app": "race"}},
		"data": map[string]any{
			"revision": revision, "name": name, "settings.yaml": strings.Repeat("key: value\n", 20),
		},
	}}
}

// check returns an error if the cluster does not contain the desired objects.
func (f *Workload) check(ctx context.Context, changed bool) error {
	list := &corev1.ConfigMapList{}
	if err := f.client.List(ctx, list, client.InNamespace(f.Namespace), client.MatchingLabels{"app": "race"}); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	ones, twos := 0, 0
	for _, cm := range list.Items {
		switch cm.Data["revision"] {
		case "one":
			ones++
		case "two":
			twos++
		}
	}
	want := 0
	if changed {
		want = f.items
	}
	if twos != want || ones+twos != f.items*Objects {
		return fmt.Errorf("the cluster contains %d ConfigMaps, %d of them changed, want %d and %d", ones+twos, twos, f.items*Objects, want)
	}
	return nil
}

// clear deletes the objects, so that every contender finds the cluster in the same state.
func (f *Workload) clear(ctx context.Context) error {
	if err := f.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(f.Namespace)); err != nil {
		return fmt.Errorf("delete ConfigMaps: %w", err)
	}
	return nil
}
