// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestFaultsHaveOneOrder ensures that the error for a manifest with several mistakes has the same text in each call. A
// text that changes would be stored and reported again each time.
func TestFaultsHaveOneOrder(t *testing.T) {
	engine := New(nil, configMaps(), Options{})
	first := ""
	for range 50 {
		body := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns"}}}
		_, err := engine.begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{{Object: body}}, false)
		if err == nil {
			t.Fatal("accepted")
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Fatalf("first %q, then %q", first, err)
		}
	}
}

// TestErrorIsOneLine ensures that an error is one line, even if a name in the manifest contains line breaks.
func TestErrorIsOneLine(t *testing.T) {
	err := &Error{Ref: Ref{APIVersion: "v1", Kind: "Secret\n", Namespace: "a\rb", Name: "c"}, Path: ".metadata.labels.x\n", Reason: "is\nbad"}
	if want := "Secret a b/c: .metadata.labels.x : is bad"; err.Error() != want {
		t.Errorf("want %q, got %q", want, err)
	}
}
