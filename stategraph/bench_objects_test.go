// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
)

// upToDateSession is a target in which all objects are up to date.
type upToDateSession struct{ *fakeSession }

func (upToDateSession) Claim(context.Context, claim, func() []claim) error { return nil }

func (upToDateSession) Apply(_ context.Context, _ unit, desired []apply.Desired) ([]apply.ApplyResult, error) {
	out := make([]apply.ApplyResult, len(desired))
	for i, d := range desired {
		out[i].Ref = apply.ToRef(d.Object)
	}
	return out, nil
}

// BenchmarkWalkObjects is like BenchmarkWalk, but each component has an object. Each run creates the objects, labels
// and outputs. The benchmark does not include package apply.
func BenchmarkWalkObjects(b *testing.B) {
	builder := NewBuilder()
	for i := range 100 {
		name := fmt.Sprintf("n%d", i)
		var requires []string
		if i >= 10 {
			requires = []string{fmt.Sprintf("n%d", i-10)}
		}
		data := map[string]string{"a": "b"}
		builder.Add(name, Object(func(context.Context) (*corev1.ConfigMap, error) { return newConfigMap(name, data), nil }), requires...)
	}
	g := mustBuild(b, builder)
	item := newItem("bench")
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w, _ := newRun(g, item, upToDateSession{newFakeSession()}, nil, logr.Discard(), parallel).visitAll(b.Context()); !w.isReady() {
					b.Fatal(w.err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.nodes)), "ns/node")
		})
	}
}
