// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Manifest deployer", func() {
	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		It("applies, changes, prunes and deletes objects ("+string(revision)+") [D8]", func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			di := w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
			Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
			Expect(w.Read(ctx, "cm-2")).To(HaveField("Data", HaveKeyWithValue("key", "a")))

			di = w.Update(ctx, "item", config(nil, w.configMaps(2, "b")...))
			Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
			Expect(w.Read(ctx, "cm-1")).To(HaveField("Data", HaveKeyWithValue("key", "b")))
			Expect(w.Read(ctx, "cm-2")).To(BeNil())

			Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
			Expect(w.Read(ctx, "cm-0")).To(BeNil())
			Expect(w.Read(ctx, "cm-1")).To(BeNil())
		}, SpecTimeout(8*time.Minute))
	}

	It("writes each object once, nothing in a job without changes, and one object if one has changed", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(20, "a")...))
		_, writes := w.GetRequestCounts(nil)
		Expect(writes).To(Equal(20))

		before := w.Counter.Snapshot()
		w.RunAgain(ctx, "item")
		reads, writes := w.GetRequestCounts(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "requests: %s", w.Counter.Snapshot().Since(before))

		before = w.Counter.Snapshot()
		changed := w.configMaps(20, "a")
		changed[7] = w.configMap("cm-7", map[string]string{"key": "b"})
		w.Update(ctx, "item", config(nil, changed...))
		_, writes = w.GetRequestCounts(before)
		Expect(writes).To(Equal(1), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(w.Read(ctx, "cm-7").Data).To(HaveKeyWithValue("key", "b"))
	}, SpecTimeout(8*time.Minute))

	It("writes nothing in a job without changes after a restart", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(20, "a")...))
		w.Manager.Stop()
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		before := w.Counter.Snapshot()
		w.start()
		w.Finished(ctx, "item")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(8*time.Minute))

	It("corrects drift at once and without polling [L3]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
		before := w.Counter.Snapshot()
		w.UpdateConfigMap(ctx, "cm-1", func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		Eventually(w.Data(ctx, "cm-1")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "a")))
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(1), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.sumMetric("deployerkit_drift_total", "what", "Changed")).To(Equal(1.0))

		Expect(w.Client.Delete(ctx, w.Read(ctx, "cm-2"))).To(Succeed())
		Eventually(w.Data(ctx, "cm-2")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "a")))

		before = w.Counter.Snapshot()
		w.UpdateConfigMap(ctx, "cm-0", func(cm *corev1.ConfigMap) { cm.Data["theirs"] = "stays" })
		Consistently(func() int { _, writes := w.GetRequestCounts(before); return writes }).Should(BeZero())
	}, SpecTimeout(8*time.Minute))

	It("reconciles an item when an object of another owner meets a custom check and provides an export [D13, D14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		theirs := &corev1.ConfigMap{Data: map[string]string{"state": "starting"}}
		theirs.Namespace, theirs.Name = w.Namespace, "theirs"
		Expect(w.Client.Create(ctx, theirs)).To(Succeed())
		ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": "theirs"}
		w.Create(ctx, "item", config(map[string]any{
			"readinessChecks": map[string]any{"custom": []any{map[string]any{
				"name": "they are up", "resourceSelector": []any{ref},
				"requirements": []any{map[string]any{"jsonPath": "data.state", "operator": "==", "values": []any{map[string]any{"value": "up"}}}},
			}}},
			"exports": map[string]any{"exports": []any{map[string]any{"key": "url", "jsonPath": "data.url", "fromResource": ref}}},
		}, w.configMap("mine", nil)))
		waitsFor := func(text string) {
			GinkgoHelper()
			_, err := w.Landscaper.WaitFor(ctx, w.Key("item"), func(di *lsv1alpha1.DeployItem) (bool, error) {
				waiting := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)
				return waiting != nil && strings.Contains(waiting.Message, text), nil
			})
			Expect(err).NotTo(HaveOccurred())
		}
		waitsFor("they are up")
		w.UpdateConfigMap(ctx, "theirs", func(cm *corev1.ConfigMap) { cm.Data["state"] = "up" })
		waitsFor(`export "url"`)
		w.UpdateConfigMap(ctx, "theirs", func(cm *corev1.ConfigMap) { cm.Data["url"] = "https://example.com" })
		di := w.Finished(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(di.Status.ExportReference).NotTo(BeNil())
	}, SpecTimeout(8*time.Minute))

	It("reads rejected credentials again, and fails the item when they are rejected twice [H-15]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		refuse := faultnet.ReturnStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		w.Counter.SetInjector(faultnet.OnlyFirst(1, refuse))
		di := w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)

		w.Counter.SetInjector(refuse)
		di = w.Update(ctx, "item", config(nil, w.configMaps(3, "b")...))
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorUnauthorized))

		w.Counter.SetInjector(nil)
		Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(8*time.Minute))

	It("corrects drift that occurred while the deployer did not run", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
		w.Manager.Stop()
		w.UpdateConfigMap(ctx, "cm-1", func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		before := w.Counter.Snapshot()
		w.start()
		Eventually(w.Data(ctx, "cm-1")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "a")))
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(1), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(8*time.Minute))
})
