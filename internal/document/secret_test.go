// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzReadSecret checks that any value results either in one JSON object or in an error that does not quote the value.
func FuzzReadSecret(f *testing.F) {
	for _, seed := range []string{"", "a: b", "[", "*x", "&a [*a]", "\xff", ".nan", "? [a]: b", "a: 1\na: 2", "!!binary x", "- - -", "{\"a\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		const mark = "# CANARY-4711\n"
		text, err := ReadSecret(map[string][]byte{"k": append([]byte(mark), value...)}, "")
		if err != nil {
			if strings.Contains(err.Error(), "CANARY") || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("unexpected error %q", err)
			}
			return
		}
		out := map[string]any{}
		if err := json.Unmarshal([]byte(text), &out); err != nil || len(out) != 1 {
			t.Errorf("secret %q is no JSON object with one key: %v", strings.ToValidUTF8(text, "?"), err)
		}
	})
}
