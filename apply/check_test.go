// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestFaultsHaveOneOrder ensures that an error has the same text at each call. Otherwise it would be written and
// reported as a new one.
func TestFaultsHaveOneOrder(t *testing.T) {
	engine := New(nil, configMaps(), Options{})
	first := ""
	for range 50 {
		body := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns"}}}
		_, _, err := engine.prepare(t.Context(), ownership.Owner{UID: "item"}, []Desired{{Object: body}})
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

// TestErrorIsOneLine covers names in a manifest that have several lines.
func TestErrorIsOneLine(t *testing.T) {
	err := &Error{Ref: Ref{APIVersion: "v1", Kind: "Secret\n", Namespace: "a\rb", Name: "c"}, Path: ".metadata.labels.x\n", Reason: "is\nbad"}
	if want := "Secret a b/c: .metadata.labels.x : is bad"; err.Error() != want {
		t.Errorf("want %q, got %q", want, err)
	}
}
