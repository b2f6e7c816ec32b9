// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"errors"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

func TestDiffUnstructured(t *testing.T) {
	cases := map[string]struct {
		reason           string
		base, wanted     string
		metadata, status string
	}{
		"no change yields no patch [K8]": {
			reason: "an empty patch costs no call",
			base:   `{"metadata":{"labels":{"a":"b"}},"status":{"n":1}}`,
			wanted: `{"metadata":{"labels":{"a":"b"}},"status":{"n":1.0}}`,
		},
		"an absent and an empty map are equal": {
			reason: "typed objects leave empty maps out",
			base:   `{"metadata":{"labels":{},"finalizers":[]},"status":{}}`,
			wanted: `{"metadata":{}}`,
		},
		"labels and annotations are changed key by key, with / and ~ in the key [Kx9]": {
			reason:   "a merge patch needs no escapes",
			base:     `{"metadata":{"labels":{"x/y~z":"1","gone":"1"},"annotations":{"keep":"1"}}}`,
			wanted:   `{"metadata":{"labels":{"x/y~z":"2"},"annotations":{"keep":"1","n/~1":"v"}}}`,
			metadata: `{"metadata":{"annotations":{"n/~1":"v"},"labels":{"gone":null,"x/y~z":"2"},"resourceVersion":"7"}}`,
		},
		"lists in metadata are sent completely [K18]": {
			reason:   "a merge patch replaces lists",
			base:     `{"metadata":{"finalizers":["a/x","b/y"],"ownerReferences":[{"uid":"1"}]}}`,
			wanted:   `{"metadata":{"finalizers":["b/y"]}}`,
			metadata: `{"metadata":{"finalizers":["b/y"],"ownerReferences":null,"resourceVersion":"7"}}`,
		},
		"fields that the API server sets are ignored": {
			reason: "it differs between versions of one object",
			base:   `{"metadata":{"generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"}}`,
			wanted: `{"metadata":{"generation":2,"managedFields":[{"manager":"x"}],"deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		},
		"objects in the status are merged recursively [K17]": {
			reason: "only what changed travels",
			base:   `{"status":{"keep":{"deep":true},"deep":{"a":1,"b":2,"l":[1,2]}}}`,
			wanted: `{"status":{"keep":{"deep":true},"deep":{"a":1,"b":3,"l":[1]}}}`,
			status: `{"metadata":{"resourceVersion":"7"},"status":{"deep":{"b":3,"l":[1]}}}`,
		},
		"removing the last key does not remove its parent [Kx10]": {
			reason: "the parent stays unless it is removed itself",
			base:   `{"status":{"emptied":{"x":1},"removed":{"x":1}}}`,
			wanted: `{"status":{"emptied":{}}}`,
			status: `{"metadata":{"resourceVersion":"7"},"status":{"emptied":{"x":null},"removed":null}}`,
		},
		"a null in an object is an absent key [K16]": {
			reason: "a merge patch cannot store it",
			base:   `{"status":{"a":null,"b":1}}`,
			wanted: `{"status":{"b":null,"c":{"d":null}}}`,
			status: `{"metadata":{"resourceVersion":"7"},"status":{"b":null,"c":{}}}`,
		},
		"a value that changes its type is replaced": {
			reason: "objects, lists and scalars may replace each other",
			base:   `{"status":{"a":{"x":1},"b":[1],"c":1}}`,
			wanted: `{"status":{"a":[1],"b":{"x":1},"c":{}}}`,
			status: `{"metadata":{"resourceVersion":"7"},"status":{"a":[1],"b":{"x":1},"c":{}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			base, wanted := newObject(t, tc.base), newObject(t, tc.wanted)
			wanted.SetResourceVersion("8")
			before := [2]client.Object{base.DeepCopy(), wanted.DeepCopy()}
			changes := mustDiff(t, base, wanted)
			expectJSON(t, tc.reason+": metadata", tc.metadata, encodeMetadata(t, changes))
			expectJSON(t, tc.reason+": status", tc.status, encodeStatus(t, changes))
			if got, want := changes.IsEmpty(), tc.metadata == "" && tc.status == ""; got != want {
				t.Errorf("Empty() = %t, want %t", got, want)
			}
			assertUnchanged(t, before[0], base)
			assertUnchanged(t, before[1], wanted)
		})
	}
}

func TestDiffRejectsChangesOfOtherFields(t *testing.T) {
	config := func(raw string) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(raw)} }
	}
	cases := map[string]struct {
		base, wanted client.Object
		path         string
	}{
		"value in config": {newItem(config(`{"foo":1}`)), newItem(config(`{"foo":2}`)), "spec.config.foo"},
		"new key":         {newItem(config(`{}`)), newItem(config(`{"foo":{"x":2}}`)), "spec.config.foo"},
		"removed key":     {newItem(config(`{"a/b":1}`)), newItem(config(`{}`)), `spec.config["a/b"]`},
		"list item":       {newItem(config(`{"l":[1,{"x":1}]}`)), newItem(config(`{"l":[1,{"x":2}]}`)), "spec.config.l[1].x"},
		"list length":     {newItem(config(`{"l":[1]}`)), newItem(config(`{"l":[1,2]}`)), "spec.config.l"},
		"first of several": {
			newItem(), newItem(config(`{}`), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "x" }), "spec.config.apiVersion",
		},
		"name":                 {newItem(), newItem(func(di *lsv1alpha1.DeployItem) { di.Name = "other" }), "metadata.name"},
		"namespace":            {newItem(), newItem(func(di *lsv1alpha1.DeployItem) { di.Namespace = "other" }), "metadata.namespace"},
		"uid":                  {newItem(), newItem(func(di *lsv1alpha1.DeployItem) { di.UID = "other" }), "metadata.uid"},
		"data of another kind": {&corev1.Secret{Data: map[string][]byte{"k": []byte("SECRET")}}, &corev1.Secret{}, "data"},
		"kind":                 {newObject(t, `{}`), withKind(newObject(t, `{}`), "Other"), "kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes, err := itempatch.Diff(tc.base, tc.wanted)
			fieldErr := &jsondiff.FieldError{}
			if !errors.As(err, &fieldErr) || fieldErr.Path != tc.path {
				t.Fatalf("Diff() error = %v, want a FieldError at %s", err, tc.path)
			}
			if !changes.IsEmpty() {
				t.Errorf("changes beside the error: %+v", changes)
			}
		})
	}
}

func TestDiffErrors(t *testing.T) {
	broken := newItem(func(di *lsv1alpha1.DeployItem) {
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{`)}
	})
	noVersion := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "" }
	changed := func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Init" }
	cases := map[string]struct{ base, wanted client.Object }{
		"invalid JSON in the base object":    {broken, newItem()},
		"invalid JSON in the desired object": {newItem(), broken},
		"status that is not an object":       {newObject(t, `{}`), newObject(t, `{"status":[]}`)},
		"changes without resourceVersion":    {newItem(noVersion), newItem(changed)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if changes, err := itempatch.Diff(tc.base, tc.wanted); err == nil || !changes.IsEmpty() {
				t.Errorf("Diff() = %+v, %v, want no changes and an error", changes, err)
			}
		})
	}
	t.Run("Diff without changes needs no resourceVersion", func(t *testing.T) {
		if changes, err := itempatch.Diff(newItem(noVersion), newItem(noVersion)); err != nil || !changes.IsEmpty() {
			t.Errorf("Diff() = %+v, %v, want nothing", changes, err)
		}
	})
}

func TestDiffTypedIgnoresMissingTypeMeta(t *testing.T) {
	base := newItem(func(di *lsv1alpha1.DeployItem) {
		di.TypeMeta = metav1.TypeMeta{APIVersion: "landscaper.gardener.cloud/v1alpha1", Kind: "DeployItem"}
	})
	if changes := mustDiff(t, base, newItem()); !changes.IsEmpty() {
		t.Errorf("changes = %+v, want none", changes)
	}
}

func withKind(u *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	u.SetKind(kind)
	return u
}

// TestDiffEmptiedList tests an empty list. An unstructured object may contain an empty list, but the JSON encoding of a
// Go type omits empty lists.
func TestDiffEmptiedList(t *testing.T) {
	base, wanted := newObject(t, `{"metadata":{"finalizers":["a/b"]}}`), newObject(t, `{"metadata":{"finalizers":[]}}`)
	expectJSON(t, "metadata", `{"metadata":{"finalizers":null,"resourceVersion":"7"}}`, encodeMetadata(t, mustDiff(t, base, wanted)))
}
