// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
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

// newMarkedObject returns a ConfigMap with the label and the annotations of an item. The function `change` may be nil.
func newMarkedObject(name string, item types.UID, change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("u-" + name), Labels: map[string]string{ownership.LabelItem: string(item)},
		Annotations:   map[string]string{ownership.AnnotationNamespace: "ns", ownership.AnnotationName: "item"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: ownership.FormatFieldManager(item)}},
	}}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if change != nil {
		change(out)
	}
	return out
}

// setSecretKind changes an object of newMarkedObject to a Secret.
func setSecretKind(obj *metav1.PartialObjectMetadata) {
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
}

// newLostEnv returns a world with an item whose inventory was lost. Its target contains the given objects.
func newLostEnv(t *testing.T, objects ...runtime.Object) (*testEnv, *metadatafake.FakeMetadataClient) {
	t.Helper()
	w := newTestEnv(t)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	w.cluster.metadata = client
	return w, client
}

// expectRestored calls RestoreInventory and compares the restored objects.
func expectRestored(t *testing.T, r *Run, by Search, want ...string) {
	t.Helper()
	if err := r.RestoreInventory(t.Context(), by); err != nil {
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

func TestRestoreInventory(t *testing.T) {
	by := Search{Kinds: map[schema.GroupVersionKind]map[string]bool{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):          {"ns": true},
		{Group: "unknown.example.com", Version: "v1", Kind: "X"}: {"ns": true},
	}}
	three := func(t *testing.T) (*testEnv, *metadatafake.FakeMetadataClient) {
		copied := func(obj *metav1.PartialObjectMetadata) { obj.Annotations = nil }
		return newLostEnv(t, newMarkedObject("a", "4f1e", nil), newMarkedObject("copied", "4f1e", copied), newMarkedObject("theirs", "5a5a", nil))
	}
	t.Run("finds what carries the marks of the item, once [F37]", func(t *testing.T) {
		w, client := three(t)
		expectRestored(t, w.begin(false), by, "ConfigMap ns/a u-a")
		if len(w.recorder.Events) != 1 {
			t.Error("no event")
		}
		calls := len(client.Actions())
		r := w.begin(false)
		r.Inventory = apply.Inventory{}
		expectRestored(t, r, by, "ConfigMap ns/a u-a")
		if len(client.Actions()) != calls+1 {
			t.Error("the inventory was lost again, and nothing was looked for")
		}
	})
	t.Run("is no call for an item that has none, but the first time [F37]", func(t *testing.T) {
		w, client := three(t)
		w.item.UID = "none"
		r := w.begin(false)
		if expectRestored(t, r, by); !r.Inventory.Empty {
			t.Error("the inventory is not marked as empty")
		}
		for range 2 {
			expectRestored(t, w.begin(false), by)
		}
		if len(client.Actions()) != 1 {
			t.Errorf("%d calls", len(client.Actions()))
		}
	})
	t.Run("is no call for an item with an inventory [F37]", func(t *testing.T) {
		w, client := three(t)
		r := w.begin(false)
		r.Inventory.Entries = []apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "b", UID: "u-b"}}
		expectRestored(t, r, by, "ConfigMap ns/b u-b")
		if len(client.Actions()) != 0 {
			t.Errorf("%d calls", len(client.Actions()))
		}
	})
	t.Run("is no call while the inventory is marked as empty [F37]", func(t *testing.T) {
		w, client := three(t)
		w.item.UID = "none"
		r := w.begin(false)
		r.Inventory.Empty = true
		expectRestored(t, r, by)
		for _, step := range []struct {
			entries []apply.Entry
			want    bool
		}{{nil, true}, {[]apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "b"}}, false}, {nil, true}, {nil, true}} {
			if err := r.SetInventory(apply.Inventory{Entries: step.entries}); err != nil || r.Inventory.Empty != step.want {
				t.Errorf("after %d objects: marked %t, error %v", len(step.entries), r.Inventory.Empty, err)
			}
		}
		if expectRestored(t, r, by); len(client.Actions()) != 0 {
			t.Errorf("%d calls", len(client.Actions()))
		}
	})
	t.Run("asks the namespaces if it may not list the cluster, and reports the kind [F37]", func(t *testing.T) {
		w, client := three(t)
		forbidList(client, "configmaps", "")
		expectRestored(t, w.begin(false), by, "ConfigMap ns/a u-a")
		w.expectEvent("SearchIncomplete", "configmaps")
	})
}

// forbidList makes the target reject list requests for a resource in a namespace.
func forbidList(client *metadatafake.FakeMetadataClient, resource, namespace string) {
	client.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == namespace, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
	})
}

// expectEvent checks that the next event has the given reason and contains the given text.
func (w *testEnv) expectEvent(reason, text string) {
	w.Helper()
	select {
	case got := <-w.recorder.Events:
		if !strings.Contains(got, reason) || !strings.Contains(got, text) {
			w.Errorf("want the event %s with the text %q, got %q", reason, text, got)
		}
	default:
		w.Errorf("no event, want %s with the text %q", reason, text)
	}
}

// listServedResources contains the resources that the target serves, besides ConfigMaps.
func listServedResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true},
	}
}

func TestRestoreInventoryOfOtherKinds(t *testing.T) {
	configMaps := Search{Kinds: map[schema.GroupVersionKind]map[string]bool{corev1.SchemeGroupVersion.WithKind("ConfigMap"): {"ns": true}}}
	t.Run("finds objects of kinds that the deployer does not name [F37]", func(t *testing.T) {
		w, client := newLostEnv(t, newMarkedObject("a", "4f1e", nil), newMarkedObject("s", "4f1e", setSecretKind))
		w.resources = listServedResources()
		expectRestored(t, w.begin(false), configMaps, "ConfigMap ns/a u-a", "Secret ns/s u-s")
		if len(client.Actions()) != 2 {
			t.Errorf("%d calls, want one per kind", len(client.Actions()))
		}
		w.expectEvent("InventoryRestored", "2 objects")
	})
	t.Run("finds no copies that other programs made [F37]", func(t *testing.T) {
		w, _ := newLostEnv(t, newMarkedObject("s", "4f1e", func(obj *metav1.PartialObjectMetadata) {
			setSecretKind(obj)
			obj.ManagedFields[0].Manager = "replicator"
		}))
		w.resources = listServedResources()
		expectRestored(t, w.begin(false), configMaps)
	})
	t.Run("reports that only the cluster of the current Target was searched, also if it finds nothing [F110]", func(t *testing.T) {
		for _, objects := range [][]runtime.Object{nil, {newMarkedObject("a", "4f1e", nil)}} {
			w, _ := newLostEnv(t, objects...)
			w.item.Spec.Target = &lsv1alpha1.ObjectReference{Name: "new"}
			r := w.begin(false)
			if err := r.RestoreInventory(t.Context(), configMaps); err != nil {
				t.Fatal(err)
			}
			w.expectEvent("InventoryRestored", "only the cluster of the Target new was searched")
			r.Inventory = apply.Inventory{}
		}
	})
	t.Run("reports that no cluster was searched if an item without a Target is deleted [F110]", func(t *testing.T) {
		w, _ := newLostEnv(t)
		r := w.begin(false)
		r.RecordUnsearchedEvent()
		w.expectEvent("SearchIncomplete", "has no Target, so no cluster was searched")
		if !r.HasLostInventory() {
			t.Error("a Target that is set later is not searched")
		}
	})
	t.Run("leaves out the copy that another controller made of an object of a known kind [F98]", func(t *testing.T) {
		w, _ := newLostEnv(t, newMarkedObject("a", "4f1e", nil), newMarkedObject("copy", "4f1e", func(obj *metav1.PartialObjectMetadata) {
			obj.ManagedFields[0].Manager = "replicator"
		}))
		expectRestored(t, w.begin(false), configMaps, "ConfigMap ns/a u-a")
	})
	t.Run("restores an object of a server that does not track who writes an object [F98]", func(t *testing.T) {
		w, _ := newLostEnv(t, newMarkedObject("a", "4f1e", func(obj *metav1.PartialObjectMetadata) { obj.ManagedFields = nil }))
		expectRestored(t, w.begin(false), configMaps, "ConfigMap ns/a u-a")
	})
	t.Run("finds objects that name the item as a further owner [F37]", func(t *testing.T) {
		w, _ := newLostEnv(t, newMarkedObject("s", "5a5a", func(obj *metav1.PartialObjectMetadata) {
			setSecretKind(obj)
			obj.Annotations[ownership.Owner{UID: "4f1e"}.GetOwnerAnnotationKey()] = "landscape/ns/item"
			obj.ManagedFields[0].Manager = ownership.FormatFieldManager("4f1e")
		}))
		w.resources = listServedResources()
		r := w.begin(false)
		expectRestored(t, r, Search{SharedKinds: []schema.GroupKind{{Kind: "Secret"}}}, "Secret ns/s u-s")
		if !r.Inventory.Entries[0].Shared {
			t.Error("the entry does not show that the label names another item")
		}
	})
	t.Run("the event names the kinds that could not be searched [F37]", func(t *testing.T) {
		w, client := newLostEnv(t)
		w.resources, w.missing = listServedResources(), []string{"broken.example.com/v1"}
		forbidList(client, "secrets", "")
		forbidList(client, "secrets", "ns")
		r := w.begin(false)
		expectRestored(t, r, configMaps)
		w.expectEvent("SearchIncomplete", "broken.example.com/v1, secrets")
		if r.Inventory.Empty || r.HasLostInventory() {
			t.Error("want a search that is not repeated by this process, and no mark")
		}
	})
	t.Run("reads all pages, and ends although the target always announces one more [F37]", func(t *testing.T) {
		w, client := newLostEnv(t)
		w.resources = listServedResources()
		page := 0
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			page++
			one := runtime.RawExtension{Object: newMarkedObject(fmt.Sprintf("s-%03d", page), "4f1e", setSecretKind)}
			return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []runtime.RawExtension{one}}, nil
		})
		r := w.begin(false)
		if err := r.RestoreInventory(t.Context(), configMaps); err != nil || len(r.Inventory.Entries) != maxPages {
			t.Errorf("%d objects, error %v", len(r.Inventory.Entries), err)
		}
		w.expectEvent("SearchIncomplete", "secrets")
	})
	t.Run("keeps no more names than an inventory can contain [F37]", func(t *testing.T) {
		w, client := newLostEnv(t)
		w.resources = listServedResources()
		page := 0
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			page++
			one := runtime.RawExtension{Object: newMarkedObject(fmt.Sprintf("%d%s", page, strings.Repeat("x", maxFound/4)), "4f1e", setSecretKind)}
			return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []runtime.RawExtension{one}}, nil
		})
		r := w.begin(false)
		if err := r.RestoreInventory(t.Context(), configMaps); err != nil || len(r.Inventory.Entries) != 1 {
			t.Errorf("%d objects, error %v", len(r.Inventory.Entries), err)
		}
		w.expectEvent("SearchIncomplete", "secrets")
	})
	t.Run("is repeated if the target fails, but not endlessly [F37]", func(t *testing.T) {
		w, client := newLostEnv(t, newMarkedObject("a", "4f1e", nil))
		w.resources = listServedResources()
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("broken"))
		})
		for range maxSearches - 1 {
			r := w.begin(false)
			if err := r.RestoreInventory(t.Context(), configMaps); err == nil || len(r.Inventory.Entries) != 0 {
				t.Errorf("want an error and no entries, got %v and %d", err, len(r.Inventory.Entries))
			}
		}
		expectRestored(t, w.begin(false), configMaps, "ConfigMap ns/a u-a")
		w.expectEvent("SearchIncomplete", "secrets")
	})
}

func TestNewEntry(t *testing.T) {
	owner, gvk := ownership.Owner{UID: "4f1e", Namespace: "ns", Name: "item"}, corev1.SchemeGroupVersion.WithKind("ConfigMap")
	plain := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "u-a"}
	adopted, kept := plain, plain
	adopted.Adopted, kept.Policy = true, apply.PolicyKeep
	for name, tc := range map[string]struct {
		key, value string
		want       apply.Entry
	}{
		"without further annotations [F37]": {"other", "true", plain},
		"adopted [F29, F37]":                {ownership.AnnotationAdopted, "true", adopted},
		"with the policy keep [F37]":        {ownership.AnnotationPolicy, "keep", kept},
		"with another policy [F37]":         {ownership.AnnotationPolicy, "manage", plain},
	} {
		t.Run(name, func(t *testing.T) {
			got, ours := NewEntry(owner, gvk, newMarkedObject("a", "4f1e", func(obj *metav1.PartialObjectMetadata) { obj.Annotations[tc.key] = tc.value }))
			if diff := cmp.Diff(tc.want, got); diff != "" || !ours {
				t.Errorf("ours: %t, %s", ours, diff)
			}
		})
	}
}
