// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

var _ = Describe("The costs of a job", func() {
	It("are no request if nothing has changed, and one object and three records if one of 20 objects has [Ex1] [Ex4]", func(ctx SpecContext) {
		s := &store{charts: map[string]charttest.Files{"chart": manyObjects()}}
		w := newWorld(ctx, useStore(s))
		configuration := func(color string) config { return w.helmMode(nil, map[string]any{"color": color}, ref("chart")) }
		Expect(w.deploy(ctx, "item", configuration("blue"))).To(beSucceeded())
		before := w.counter.Snapshot()
		Expect(w.again(ctx, "item")).To(beSucceeded())
		Expect(w.counter.Snapshot().Since(before).Sum()).To(BeZero(), "the number of requests")
		Expect(w.update(ctx, "item", configuration("red"))).To(beSucceeded())
		got := w.counter.Snapshot().Since(before)
		Expect(got.OnlyWrites().Sum()).To(Equal(4), "writes:\n%s", got)
		Expect(got.OnlyWrites().ForObject("configmaps", w.namespace, "web-0").Sum()).To(Equal(1))
		Expect(s.fetched).To(Equal(2), "the number of fetched charts")
	})

	It("include no memory for the chart after the job [Ex37]", func(ctx SpecContext) {
		const releases = 24
		s := &store{charts: map[string]charttest.Files{"chart": {
			"files/noise.txt": noise(300_000), "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
		}}}
		w := newWorld(ctx, useStore(s))
		configuration := func(name string) config {
			c := ref("chart")
			c["name"] = name
			return w.helmMode(nil, nil, c)
		}
		Expect(w.deploy(ctx, "warm-up", configuration("warm-up"))).To(beSucceeded())
		before := heapSize(250 * time.Millisecond)
		for i := range releases {
			w.create(ctx, fmt.Sprintf("item%d", i), configuration(fmt.Sprintf("item%d", i)))
		}
		for i := range releases {
			Expect(w.finished(ctx, fmt.Sprintf("item%d", i))).To(beSucceeded())
		}
		Expect((float64(heapSize(250*time.Millisecond))-float64(before))/releases).To(BeNumerically("<", 100_000), "bytes per release of a chart of 300 KB")
	})
})
