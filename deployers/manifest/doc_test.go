// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedConfigurationIsValid decodes the configuration that the package comment shows.
func TestDocumentedConfigurationIsValid(t *testing.T) {
	body, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(body), "# The configuration of an item\n//\n")
	text, _, _ = strings.Cut(text, "\n//\n")
	config := strings.ReplaceAll(text, "//\t", "")
	got, err := Decode(newItem(t, config), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	if len(got.Manifests) != 1 || len(got.Checks) != 1 || len(got.Exports) != 2 || len(got.DeletionGroups) != 2 || got.ContinuousReconcile == nil {
		t.Errorf("Decode(...): the package comment lacks something: %+v", got)
	}
	expectRoundTrip(t, got)
}
