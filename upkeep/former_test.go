// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// become creates the namespace kube-system of the target with a UID, and an object of an item.
func (w *world) become(uid types.UID, owner ownership.Owner) {
	w.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("ns")
	object.SetName("a")
	owner.Stamp(object)
	objects := []client.Object{object}
	if uid != "" {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}})
	}
	for _, object := range objects {
		if err := w.cluster.Create(w.Context(), object); err != nil {
			w.Fatal(err)
		}
	}
}

func TestOneFormerCluster(t *testing.T) {
	left := func(reason string) leftover { return leftover{entries: entries("a"), reason: reason} }
	for name, tc := range map[string]struct {
		uid   types.UID
		fault error
		want  leftover
		gone  bool
	}{
		"of the inventory":         {uid: "old", gone: true},
		"that is another one now":  {uid: "new", want: leftover{released: releasedByTarget}},
		"that is not identified":   {want: left("the cluster cannot be identified, because its namespace kube-system cannot be read")},
		"whose Target is gone":     {fault: apierrors.NewNotFound(schema.GroupResource{Resource: "targets"}, "old"), want: left("the Target does not exist any more")},
		"that cannot be connected": {fault: errors.New("no route"), want: left("no route")},
	} {
		t.Run(name+" [F13]", func(t *testing.T) {
			w := newWorld(t)
			owner := w.begin(false).Owner
			w.become(tc.uid, owner)
			clean := cleaner{owner: owner, open: func(context.Context, string, string) (*Cluster, error) { return w.cluster, tc.fault }}
			got := clean.one(t.Context(), apply.Inventory{Cluster: &apply.Cluster{UID: "old", Target: "old"}, Entries: entries("a")})
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(leftover{})); diff != "" {
				t.Error(diff)
			}
			err := w.cluster.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{})
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("the object is gone: %t, want %t", !tc.gone, tc.gone)
			}
		})
	}
}

func TestFormerClustersAreTriedAgain(t *testing.T) {
	t.Run("after twice the time [F13]", func(t *testing.T) {
		w := newWorld(t)
		for pause := minCleanUp; ; pause = min(2*pause, maxCleanUp) {
			r := w.begin(true)
			r.Take()
			r.Inventory.Former = []apply.Inventory{{Cluster: &apply.Cluster{UID: "old", Target: "old"}, Entries: entries("a")}}
			if _, err := r.CleanUp(t.Context(), apply.Options{}, nil); err != nil || len(r.Inventory.Former) != 1 {
				t.Fatalf("%v, left: %+v", err, r.Inventory.Former)
			}
			r.Finished()
			w.wants(false, pause)
			w.clock.Step(pause)
			w.wants(true, 0)
			if pause == maxCleanUp {
				return
			}
		}
	})
}
