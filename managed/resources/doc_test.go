// SPDX-License-Identifier: Apache-2.0

package resources

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
	_, text, _ := strings.Cut(string(body), "# The configuration\n//\n")
	text, _, _ = strings.Cut(text, "\n//\n")
	got, err := decode(t, strings.ReplaceAll(text, "//\t", ""), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(got.Checks) != 1 || len(got.Exports) != 2 || len(got.DeletionGroups) != 2 || got.ContinuousReconcile == nil {
		t.Errorf("Config(...): the package comment lacks something: %+v", got)
	}
	expectRoundTrip(t, got)
}
