// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/internal/redact"
)

func TestDocuments(t *testing.T) {
	const canary = `k4n4ry!"secret`
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	document := fmt.Appendf(nil, `{"manifests": [{"data": {"x": %q, "short": "of", "pin": 12345678}, "list": [%q]}]}`, encoded, canary+"-2")
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"plain":          {"what is encoded in the document is known decoded", "it is " + canary, "it is ***"},
		"encoded":        {"as it stands there", "it is " + encoded + "!", "it is ***!"},
		"quoted":         {"with the quotes of Go", fmt.Sprintf("it is %q", canary+"-2"), `it is "***"`},
		"value in a map": {"as Go prints it", fmt.Sprint(map[string]string{"x": canary}), "map[x:***]"},
		"whole":          {"the whole document", "object " + string(document), `object {"manifests": [{"data": {"x": "***", "short": "of", "pin": ***}, "list": ["***"]}]}`},
		"longest":        {"one value contains another", canary + "-2 and " + canary, "*** and ***"},
		"words":          {"short values are parts of words", "out of order", "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact.RemoveDocuments(tc.text, document); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if got := redact.RemoveDocuments("no JSON: "+canary, []byte(canary)); got != "no JSON: ***" {
		t.Errorf("a document that is no JSON is a value: got %q", got)
	}
	t.Run("an item with too many values is withheld [F7]", func(t *testing.T) {
		large := strconv.Quote(strings.Repeat("value ", 3<<19))
		if got := redact.RemoveDocuments("denied: k4n4ry", []byte(large)); strings.Contains(got, "k4n4ry") || got == "" {
			t.Errorf("Documents(...) = %q, want a text without the value", got)
		}
	})
}
