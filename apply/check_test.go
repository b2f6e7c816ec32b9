// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestFaultsHaveOneOrder: an error that changes its text at each call would be written and told as a new one.
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

// TestErrorIsOneLine: also when a manifest's names are not.
func TestErrorIsOneLine(t *testing.T) {
	err := &Error{Ref: Ref{APIVersion: "v1", Kind: "Secret\n", Namespace: "a\rb", Name: "c"}, Path: ".metadata.labels.x\n", Reason: "is\nbad"}
	if want := "Secret a b/c: .metadata.labels.x : is bad"; err.Error() != want {
		t.Errorf("want %q, got %q", want, err)
	}
}
