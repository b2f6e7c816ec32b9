// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
)

// BenchmarkWalk walks a graph of 100 components that have nothing to do. "idle" measures only the walk. "resources"
// also measures creating contexts and calling the resources.
func BenchmarkWalk(b *testing.B) {
	builder := NewBuilder()
	for i := range 100 {
		var requires []string
		if i >= 10 {
			requires = []string{fmt.Sprintf("n%d", i-10), fmt.Sprintf("n%d", (i-10)/10*10)}
		}
		builder.Add(fmt.Sprintf("n%d", i), stubResource{}, requires...)
	}
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	item := newItem("bench")
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w, _ := newRun(g, item, nil, nil, logr.Discard(), parallel).visitAll(b.Context()); !w.isReady() {
					b.Fatal(w.err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.nodes)), "ns/node")
		})
	}
}
