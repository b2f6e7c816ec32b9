// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// labelled returns a ConfigMap that has the label of the given item. If named is true, the ConfigMap also has the
// annotations.
func labelled(name string, item types.UID, named bool) runtime.Object {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("u-" + name), Labels: map[string]string{ownership.LabelItem: string(item)},
	}}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if named {
		out.Annotations = map[string]string{ownership.AnnotationNamespace: "ns", ownership.AnnotationName: "item"}
	}
	return out
}

func TestRecover(t *testing.T) {
	kinds := map[schema.GroupVersionKind]map[string]bool{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):          {"ns": true},
		{Group: "unknown.example.com", Version: "v1", Kind: "X"}: {"ns": true},
	}
	lost := func(t *testing.T) (*world, *metadatafake.FakeMetadataClient) {
		w := newWorld(t)
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := metadatafake.NewSimpleMetadataClient(scheme, labelled("a", "4f1e", true), labelled("copied", "4f1e", false), labelled("theirs", "5a5a", true))
		w.cluster.metadata = client
		w.item.Status.JobIDFinished = "1"
		return w, client
	}
	recovered := func(t *testing.T, r *Run, want ...string) {
		t.Helper()
		if err := r.Recover(t.Context(), kinds, nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range r.Inventory.Entries {
			got = append(got, entry.Ref().String()+" "+string(entry.UID))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("finds what carries the marks of the item, once [F37]", func(t *testing.T) {
		w, client := lost(t)
		recovered(t, w.begin(false), "ConfigMap ns/a u-a")
		if len(w.recorder.Events) != 1 {
			t.Error("no event")
		}
		calls := len(client.Actions())
		r := w.begin(false)
		r.Inventory = apply.Inventory{}
		recovered(t, r, "ConfigMap ns/a u-a")
		if len(client.Actions()) != calls+1 {
			t.Error("the inventory was lost again, and nothing was looked for")
		}
	})
	t.Run("is no call for an item that has none, but the first time [F37]", func(t *testing.T) {
		w, client := lost(t)
		w.item.UID = "none"
		for range 3 {
			recovered(t, w.begin(false))
		}
		if len(client.Actions()) != 1 {
			t.Errorf("%d calls", len(client.Actions()))
		}
	})
	t.Run("is no call for an item that never ran, nor with an inventory [F37]", func(t *testing.T) {
		w, client := lost(t)
		w.item.Status.JobIDFinished = ""
		recovered(t, w.begin(false))
		w.item.Status.JobIDFinished = "1"
		r := w.begin(false)
		r.Inventory.Entries = []apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "b", UID: "u-b"}}
		recovered(t, r, "ConfigMap ns/b u-b")
		if len(client.Actions()) != 0 {
			t.Errorf("%d calls", len(client.Actions()))
		}
	})
	t.Run("is no call while the inventory is marked as empty [F37]", func(t *testing.T) {
		w, client := lost(t)
		w.item.UID = "none"
		r := w.begin(false)
		r.Inventory.Empty = true
		if recovered(t, r); len(client.Actions()) != 0 {
			t.Errorf("%d calls", len(client.Actions()))
		}
		for _, step := range []struct {
			entries []apply.Entry
			want    bool
		}{{nil, true}, {[]apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "b"}}, false}, {nil, false}} {
			if err := r.Note(apply.Inventory{Entries: step.entries}); err != nil || r.Inventory.Empty != step.want {
				t.Errorf("after %d objects: marked %t, error %v", len(step.entries), r.Inventory.Empty, err)
			}
		}
		if recovered(t, r); len(client.Actions()) != 1 {
			t.Errorf("%d calls after the item had objects", len(client.Actions()))
		}
	})
	t.Run("asks the namespaces if it may not list the cluster [F37]", func(t *testing.T) {
		w, client := lost(t)
		client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == "", nil, apierrors.NewForbidden(configMaps.GroupResource(), "", nil)
		})
		w.item.DeletionTimestamp = &metav1.Time{Time: noon}
		recovered(t, w.begin(false), "ConfigMap ns/a u-a")
	})
}
