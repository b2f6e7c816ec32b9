// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
)

var _ = Describe("Drift of children", func() {
	It("corrects changed fields of children at once, and keeps fields of other managers [R17, R39, Rh5]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithFixedStatus))
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Data["key"], cm.Data["theirs"] = "by hand", "x" })
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Data", data{"key": "1", "theirs": "x"}))
		w.WaitUntilQuiet(ctx)
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(1), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("restores tracking labels that were removed, and deletes a child without labels with its item [Rx14]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.options.Tracking = &declarative.Tracking{}
		w.start(declarative.HandlerFunc(handleWithFixedStatus))
		di := w.CreateAndRun(ctx, "item", config(two))
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Labels = nil })
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Labels", And(
			HaveKeyWithValue(ownership.LabelItem, string(di.UID)), HaveKeyWithValue(declarative.DefaultInstanceLabel, string(di.UID)),
		)))
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Labels, cm.Annotations = nil, nil })
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil(), "not lost although it had no mark")
	}, SpecTimeout(5*time.Minute))

	It("creates a deleted child again, but does not change a child that is being deleted [Rx3]", func(ctx SpecContext) {
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		Expect(w.Client.Delete(ctx, w.Read(ctx, "b"))).To(Succeed())
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).ShouldNot(BeNil())

		By("deleting an object that a finalizer holds")
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/held"} })
		w.WaitUntilQuiet(ctx)
		old := w.Read(ctx, "a")
		Expect(w.Client.Delete(ctx, old)).To(Succeed())
		Eventually(func() bool {
			child, _ := handler.last("item").Children.Find("ConfigMap", "a")
			return child.IsDeleting()
		}).WithTimeout(patience).Should(BeTrue())
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		Consistently(w.Data(ctx, "a")).WithTimeout(time.Second).Should(And(HaveField("UID", old.UID), HaveField("Data", data{"key": "by hand"})), "left alone")
		w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(And(Not(BeNil()), HaveField("UID", Not(Equal(old.UID))), HaveField("Data", data{"key": "1"})))
	}, SpecTimeout(5*time.Minute))

	It("corrects drift that occurred while the deployer did not run, and calls the handler again [R8]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		const items = 5
		name := func(i int) string { return fmt.Sprint("item-", i) }
		for i := range items {
			w.Create(ctx, name(i), config(map[string]map[string]string{name(i): {"key": "1"}}))
		}
		for i := range items {
			Eventually(w.status(ctx, name(i))).WithTimeout(patience).Should(HaveKeyWithValue("seen", HaveLen(1)))
		}
		w.Manager.Stop()
		w.UpdateConfigMap(ctx, name(0), func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		for i := range items {
			w.setForeignField(ctx, name(i), "meanwhile")
		}
		w.workers = 1 // with one worker, the first item opens the watch before the other items are processed
		w.start(declarative.HandlerFunc(handleWithCounts))
		for i := range items {
			Eventually(w.status(ctx, name(i))).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{name(i): "meanwhile"}))
		}
		Eventually(w.Data(ctx, name(0))).WithTimeout(patience).Should(HaveField("Data", data{"key": "1", "seen": "meanwhile"}))
	}, SpecTimeout(5*time.Minute))

	It("refuses a child that another item owns with an error that names this item, and leaves the child unchanged [R35]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithFixedStatus))
		w.CreateAndRun(ctx, "first", config(map[string]map[string]string{"a": {"key": "first"}}))
		w.WaitUntilQuiet(ctx)
		version := w.Read(ctx, "a").ResourceVersion
		w.Create(ctx, "second", config(map[string]map[string]string{"a": {"key": "second"}, "b": {"key": "second"}}))
		Eventually(func() any { return w.Get(ctx, "second").Status.LastError }).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", And(ContainSubstring("a"), ContainSubstring(w.Namespace+"/first")))))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).ShouldNot(BeNil(), "one child that fails does not stop the others")
		Expect(w.Read(ctx, "a").ResourceVersion).To(Equal(version), "the first one's child is untouched")
		Expect(w.Get(ctx, "first").Status.LastError).To(BeNil())

		By("deleting the first item")
		w.Delete(ctx, "first")
		if phase := w.Get(ctx, "second").Status.Phase; phase.IsFailed() {
			w.RunAgain(ctx, "second")
		}
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(And(Not(BeNil()), HaveField("Data", data{"key": "second"})))
	}, SpecTimeout(5*time.Minute))
})
