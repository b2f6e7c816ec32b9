// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
)

// BenchmarkDiff shows that the size of an unchanged spec does not affect the time of Diff.
func BenchmarkDiff(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("config of %d KiB", size>>10), func(b *testing.B) {
			base := newItem(func(di *lsv1alpha1.DeployItem) {
				raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"C","text":%q}`, strings.Repeat("x", size))
				di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(raw)}
			})
			wanted := base.DeepCopy()
			wanted.Status.Phase = "Init"
			b.ReportAllocs()
			for b.Loop() {
				if _, err := itempatch.Diff(base, wanted); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
