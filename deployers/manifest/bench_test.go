// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDecode50(b *testing.B) {
	var items []string
	for i := range 50 {
		items = append(items, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d","namespace":"ns","labels":{"app":"a"}},"data":{"k":%q}}`, i, strings.Repeat("x", 300)))
	}
	di := newItemFromRaw([]byte(`{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","manifests":[` + strings.Join(items, ",") + `]}`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(di, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
