// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// flooded is the time for which the specs of this file trigger an item 50 times a second. In this time, the backoff of
// a failing item allows about six runs: after 0, 0.1, 0.3, 0.7, 1.5 and 3.1 seconds.
const flooded = 4 * time.Second

// mostRuns is the maximum number of runs in this time, with a reserve for a slow machine.
const mostRuns = 8

var _ = Describe("Frequency of runs of the manifest deployer", func() {
	for name, job := range map[string]bool{"in the background": false, "in a job": true} {
		It("repeats a failed run only after the backoff, although other clients trigger it all the time, "+name+" [F65]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID)
			args := manifest.Args(nil, w.options)
			args.Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}
			w.Start(args)
			schedule := map[string]any{"continuousReconcile": map[string]any{"every": "1s"}}
			w.CreateAndRun(ctx, "item", config(schedule, w.configMap("a", map[string]string{"key": "1"}), w.configMap("b", map[string]string{"key": "1"})))
			w.WaitUntilQuiet(ctx)

			w.SetQuotaExceeded("a")
			before := w.Counter.Snapshot()
			Expect(w.Client.Delete(ctx, w.Read(ctx, "a"))).To(Succeed())
			if job {
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
			}
			changes := w.UpdateRepeatedly(ctx, "b", flooded, func() {
				b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "b"}}
				drift := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"2"}}`))
				Expect(w.Client.Patch(ctx, b, drift, client.FieldOwner("kubectl-edit"))).To(Succeed())
			})
			_, writes := w.GetRequestCounts(before)
			GinkgoWriter.Println(2*changes, "changes led to", writes, "writes")
			Expect(writes).To(BeNumerically("<=", 2*mostRuns))
			Expect(writes).To(BeNumerically(">=", 3))

			By("removing the cause of the failure")
			w.SetQuotaExceeded("")
			Eventually(w.Data(ctx, "a")).WithTimeout(patience).ShouldNot(BeNil())
		}, SpecTimeout(5*time.Minute))
	}

	It("corrects each of several changes although it runs at most once per second [F66]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		manifests := []any{}
		for _, name := range []string{"a", "b", "c", "d"} {
			manifests = append(manifests, w.configMap(name, map[string]string{"key": "1"}))
		}
		w.CreateAndRun(ctx, "item", config(nil, manifests...))
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		for _, name := range []string{"a", "b", "c", "d"} {
			w.UpdateConfigMap(ctx, name, func(cm *corev1.ConfigMap) { cm.Data["key"] = "2" })
		}
		Eventually(func(g Gomega) {
			for _, name := range []string{"a", "b", "c", "d"} {
				g.Expect(w.Data(ctx, name)(g).Data).To(HaveKeyWithValue("key", "1"))
			}
		}).WithTimeout(patience).Should(Succeed(), "the last change is corrected, too")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(4))
	}, SpecTimeout(5*time.Minute))
})
