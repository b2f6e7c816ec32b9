// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func FuzzIsLabelValue(f *testing.F) {
	for _, seed := range []string{
		"", "a", "A9", "-", "a-", ".a", "a_b.c-d", "a b", "ä", "aä", "a/b", "a\x00", "a\n", "\xff", "a\xffb", strings.Repeat("a", 63), strings.Repeat("a", 64),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got, want := isLabelValue(value), len(validation.IsValidLabelValue(value)) == 0; got != want {
			t.Errorf("%q: %v, Kubernetes says %v", value, got, want)
		}
	})
}
