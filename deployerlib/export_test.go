// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// newExport returns an export Secret with an owner reference. The parameter `owner` is the UID in the reference. If
// owner is empty, the Secret has no owner reference.
func newExport(name string, owner types.UID, data string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "secret-uid"}}
	s.Data = map[string][]byte{"config": []byte(data)}
	if owner != "" {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "X", Name: "x", UID: owner}}
	}
	return s
}

// newLeftoverExport returns the export Secret of a deleted item. The parameter `item` is the name of that item.
func newLeftoverExport(name, item string) *corev1.Secret {
	s := newExport(name, "uid-0", "old")
	s.OwnerReferences[0].APIVersion, s.OwnerReferences[0].Kind, s.OwnerReferences[0].Name = lsv1alpha1.SchemeGroupVersion.String(), "DeployItem", item
	return s
}

// addOwner adds a second owner to the Secret.
func addOwner(s *corev1.Secret) *corev1.Secret {
	s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "x/v1", Kind: "X", Name: "x", UID: "other"})
	return s
}

// failGet returns errBoom and sends no request.
func failGet(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBoom
}

func TestWriteExport(t *testing.T) {
	const name = "item-export"
	tests := map[string]struct {
		stored []client.Object
		ref    *lsv1alpha1.ObjectReference
		values any
		name   string
		want   string
		err    string
	}{
		"a missing Secret is created":                                    {nil, nil, map[string]int{"a": 1}, name, `{"a":1}`, ""},
		"the Secret of the item is updated":                              {[]client.Object{newExport(name, "uid-1", "old")}, nil, json.RawMessage(`{"b":2}`), name, `{"b":2}`, ""},
		"the Secret in status.exportRef is updated":                      {[]client.Object{newExport("mine", "uid-1", "old")}, &lsv1alpha1.ObjectReference{Name: "mine"}, []byte("x: 1"), "mine", "x: 1", ""},
		"the Secret of another item is not changed":                      {[]client.Object{newExport(name, "other", "theirs")}, nil, 1, name, "theirs", "does not belong to this item"},
		"the Secret of an earlier item with the same name is replaced":   {[]client.Object{newLeftoverExport(name, newItem().Name)}, nil, 1, name, "1", ""},
		"the Secret of an earlier item with another name is not changed": {[]client.Object{newLeftoverExport(name, "another")}, nil, 1, name, "old", "does not belong to this item"},
		"a Secret with a second owner is not changed":                    {[]client.Object{addOwner(newLeftoverExport(name, newItem().Name))}, nil, 1, name, "old", "does not belong to this item"},
		"a Secret without an owner is not changed":                       {[]client.Object{newExport(name, "", "theirs")}, nil, 1, name, "theirs", "does not belong to this item"},
		"a Secret in another namespace is not written":                   {nil, &lsv1alpha1.ObjectReference{Name: name, Namespace: "kube-system"}, 1, name, "", "not the item's namespace"},
		"a value that exceeds the size of a Secret is refused":           {nil, nil, []byte(strings.Repeat("x", 1<<20+1)), name, "", "more than"},
		"a value that cannot be encoded as JSON is refused":              {nil, nil, func() {}, name, "", "encode export"},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(test.stored...).Build()
			di := newItem()
			di.Status.ExportReference = test.ref
			err := deployerlib.WriteExport(t.Context(), c, di, test.values)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			} else if err != nil || di.Status.ExportReference.Name != test.name || di.Status.ExportReference.Namespace != ns {
				t.Errorf("error %v, reference %+v", err, di.Status.ExportReference)
			}
			got := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: test.name}, got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if string(got.Data["config"]) != test.want {
				t.Errorf("stored %q, want %q", got.Data["config"], test.want)
			}
			if test.err == "" && (len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != di.UID || got.OwnerReferences[0].BlockOwnerDeletion != nil) {
				t.Errorf("owners %+v", got.OwnerReferences)
			}
		})
	}
	t.Run("the error names the largest value, but shows no value, if a Secret cannot hold all values [D14][H-33]", func(t *testing.T) {
		values := map[string]any{"small": "CANARY", "large": strings.Repeat("x", corev1.MaxSecretSize)}
		err := deployerlib.WriteExport(t.Context(), fake.NewClientBuilder().Build(), newItem(), values)
		if err == nil || !strings.Contains(err.Error(), `the largest is "large" with 1048578 bytes`) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("error %v", err)
		}
		if codes := contract.ErrorCodes(err); len(codes) != 1 || codes[0] != lsv1alpha1.ErrorConfigurationProblem {
			t.Errorf("codes %v", codes)
		}
	})
	t.Run("the same values are not written again", func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		di := newItem()
		for range 3 {
			if err := deployerlib.WriteExport(t.Context(), c, di, map[string]int{"a": 1}); err != nil {
				t.Fatal(err)
			}
		}
		got := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, got); err != nil || got.ResourceVersion != "1" {
			t.Errorf("version %q, error %v", got.ResourceVersion, err)
		}
	})
}

func TestDeleteExport(t *testing.T) {
	ref := &lsv1alpha1.ObjectReference{Name: "item-export", Namespace: ns}
	tests := map[string]struct {
		stored []client.Object
		ref    *lsv1alpha1.ObjectReference
		left   bool
	}{
		"the Secret of the item is deleted":          {[]client.Object{newExport("item-export", "uid-1", "x")}, ref, false},
		"a missing Secret is not an error":           {nil, ref, false},
		"the Secret of another item is kept":         {[]client.Object{newExport("item-export", "other", "x")}, ref, true},
		"an item without an export keeps the Secret": {[]client.Object{newExport("item-export", "uid-1", "x")}, nil, true},
		"a Secret in another namespace is ignored":   {nil, &lsv1alpha1.ObjectReference{Name: "a", Namespace: "kube-system"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(test.stored...).Build()
			di := newItem()
			di.Status.ExportReference = test.ref
			if err := deployerlib.DeleteExport(t.Context(), c, di); err != nil {
				t.Fatal(err)
			}
			if di.Status.ExportReference != nil {
				t.Error("the reference is still there")
			}
			err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "item-export"}, &corev1.Secret{})
			if left := err == nil; left != test.left {
				t.Errorf("still there: %t, want %t", left, test.left)
			}
		})
	}
	t.Run("an error of the API server is returned", func(t *testing.T) {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: failGet}).Build()
		di := newItem()
		di.Status.ExportReference = ref
		if err := deployerlib.DeleteExport(t.Context(), c, di); !errors.Is(err, errBoom) || di.Status.ExportReference == nil {
			t.Errorf("error %v, reference %v", err, di.Status.ExportReference)
		}
	})
}
