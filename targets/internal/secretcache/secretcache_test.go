// SPDX-License-Identifier: Apache-2.0

package secretcache

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestSecretsAreLimited(t *testing.T) {
	name := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "garden", Name: fmt.Sprint(i)}
	}
	for what, tc := range map[string]struct{ size, add, want int }{
		"secrets that are too large together [F1]": {1 << 20, 100, 31},
		"secrets if there are too many":            {10, 1000, MaxSecrets},
		"a secret that is too large":               {maxBytes + 1, 1, 0},
	} {
		t.Run("drops "+what, func(t *testing.T) {
			s := New()
			for i := range tc.add {
				s.Add(name(i), map[string][]byte{"kubeconfig": make([]byte, tc.size)}, time.Time{})
				s.Get(name(0))                                                                      // the most recently used secret
				s.Add(name(i), map[string][]byte{"kubeconfig": make([]byte, tc.size)}, time.Time{}) // adding a secret again must not count it twice
			}
			if len(s.byName) != tc.want || s.recent.Len() != tc.want || s.bytes > maxBytes {
				t.Errorf("%d secrets of %d bytes are kept, want %d", len(s.byName), s.bytes, tc.want)
			}
			if tc.want > 0 && (s.Get(name(0)) == nil || s.Get(name(1)) != nil || s.Get(name(tc.add-1)) == nil) {
				t.Error("the secret that was not used for longest did not go first")
			}
			for i := range tc.add {
				s.Remove(name(i))
			}
			if s.bytes != 0 || len(s.byName) != 0 || s.recent.Len() != 0 {
				t.Errorf("%d bytes are left", s.bytes)
			}
		})
	}
}
