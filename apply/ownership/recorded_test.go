// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDecodeRecordedObjects reads the labels, the annotations and the field managers of objects that an earlier version
// of the library has written.
func TestDecodeRecordedObjects(t *testing.T) {
	raw, err := os.ReadFile("testdata/recorded/object.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Object, Shared        map[string]any
		Manager, PatchManager string
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	item := Owner{UID: "4f1e", Namespace: "ns", Name: "item", Landscape: "landscape"}
	other := Owner{UID: "5a2b", Namespace: "ns", Name: "other", Landscape: "landscape"}
	object, shared := &unstructured.Unstructured{Object: recorded.Object}, &unstructured.Unstructured{Object: recorded.Shared}
	if owner, marked := GetOwner(object); !marked || owner != item {
		t.Errorf("OwnerOf(object) = %v, %t, want %v", owner, marked, item)
	}
	if diff := cmp.Diff([]Owner{item, other}, ListOwners(shared)); diff != "" {
		t.Errorf("OwnersOf(shared) (-want +got):\n%s", diff)
	}
	annotations := object.GetAnnotations()
	if annotations[AnnotationAdopted] != "true" || annotations[AnnotationPolicy] != "keep" {
		t.Errorf("the annotations for adoption and policy have other names than recorded: %v", annotations)
	}
	if item.FieldManager() != recorded.Manager || item.PatchFieldManager() != recorded.PatchManager {
		t.Errorf("field managers %q and %q, recorded %q and %q", item.FieldManager(), item.PatchFieldManager(), recorded.Manager, recorded.PatchManager)
	}
}
