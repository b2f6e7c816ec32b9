// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"testing"

	"github.com/deployerkit/deployerkit/internal/version"
)

func TestIsOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"before":                            {"9", "10", true},
		"equal versions":                    {"10", "10", false},
		"after":                             {"10", "9", false},
		"versions of more than 64 bits":     {"18446744073709551616", "18446744073709551617", true},
		"an empty first version":            {"", "10", false},
		"an empty second version":           {"10", "", false},
		"two versions that are not numbers": {"a", "b", false},
		"one version that is not a number":  {"9", "b", false},
		"a leading zero":                    {"09", "10", false},
		"a version with space":              {" 9", "10", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := version.IsOlder(tc.a, tc.b); got != tc.want {
				t.Errorf("Older(%q, %q) = %v, want %v", tc.a, tc.b, got, tc.want)
			}
		})
	}
}
