// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Plan of a declarative deployer", func() {
	It("shows what the next run would do, and writes nothing [F31]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		w.CreateAndRun(ctx, "item", config(map[string]data{"a": {"key": "1"}, "b": {"key": "1"}, "c": {"key": "1"}}))
		di := w.Get(ctx, "item")
		plan, err := declarative.Plan(ctx, w.Client, w.Client, declarative.HandlerFunc(handleWithCounts), w.options, di)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.String()).To(Equal("0 to do, 3 unchanged\n"))

		next := w.Item("item", config(map[string]data{"a": {"key": "2"}, "b": {"key": "1"}, "d": {"key": "1"}}))
		di.Spec.Configuration = next.Spec.Configuration
		plan, err = declarative.Plan(ctx, w.Client, w.Client, declarative.HandlerFunc(handleWithCounts), w.options, di)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.String()).To(And(
			ContainSubstring("change ConfigMap "+w.Namespace+"/a\n  .data.key: \"1\" -> \"2\"\n"),
			ContainSubstring("delete ConfigMap "+w.Namespace+"/c\n"),
			ContainSubstring("create ConfigMap "+w.Namespace+"/d\n"),
			HaveSuffix("3 to do, 1 unchanged\n"),
		))
		Expect(w.Read(ctx, "a").Data).To(HaveKeyWithValue("key", "1"))
		Expect(w.Read(ctx, "c")).NotTo(BeNil())
		Expect(w.Read(ctx, "d")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("passes the same request to the handler as a run does, with the Target, children without labels, and children of an earlier item [F31]", func(ctx SpecContext) {
		both := config(map[string]data{"a": {"key": "1"}, "b": {"key": "1"}, "c": {"key": "1"}})
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		w.CreateAndRun(ctx, "item", both)
		w.Manager.Stop()
		w.UpdateConfigMap(ctx, "b", func(cm *corev1.ConfigMap) { delete(cm.Labels, ownership.LabelItem) })
		w.UpdateConfigMap(ctx, "c", func(cm *corev1.ConfigMap) { cm.Labels[ownership.LabelItem] = "uid-of-an-earlier-item" })
		earlier := w.Read(ctx, "c").DeepCopy()
		earlier.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: "d", Labels: earlier.Labels, Annotations: earlier.Annotations}
		Expect(w.Client.Create(ctx, earlier)).To(Succeed())
		stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "e", Labels: earlier.Labels}}
		Expect(w.Client.Create(ctx, stranger)).To(Succeed())

		planned := newRecordingHandler(declarative.HandlerFunc(handleWithCounts))
		_, err := declarative.Plan(ctx, w.Client, w.Client, planned, w.options, w.Get(ctx, "item"))
		Expect(err).NotTo(HaveOccurred())
		ran := newRecordingHandler(declarative.HandlerFunc(handleWithCounts))
		w.start(ran)
		Eventually(func() any { return ran.getFirstRequest("item") }).WithContext(ctx).WithTimeout(patience).ShouldNot(BeNil())
		want, got := ran.getFirstRequest("item"), planned.getFirstRequest("item")
		Expect(got.Target.Name).To(Equal(world.Cluster))
		Expect(got.Target).To(Equal(want.Target))
		Expect(got.Item.TypeMeta).To(Equal(want.Item.TypeMeta))
		Expect(got.Item.ObjectMeta).To(Equal(want.Item.ObjectMeta))
		Expect(got.Item.Spec).To(Equal(want.Item.Spec))
		Expect(got.Status).To(MatchJSON(want.Status))
		Expect(listNames(got.Children)).To(Equal([]string{"a", "b", "c", "d"}))
		Expect(listNames(want.Children)).To(Equal(listNames(got.Children)))
		for i := range want.Children {
			Expect(got.Children[i].Raw()).To(MatchJSON(want.Children[i].Raw()))
		}
	}, SpecTimeout(5*time.Minute))

	It("passes a Target that does not exist yet to the handler by its name [F31]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		di := w.Item("item", config(nil), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "later" })
		planned := newRecordingHandler(declarative.HandlerFunc(handleWithCounts))
		_, err := declarative.Plan(ctx, w.Client, w.Client, planned, w.options, di)
		Expect(err).NotTo(HaveOccurred())
		Expect(client.ObjectKeyFromObject(planned.getFirstRequest("item").Target)).To(Equal(w.Key("later")))
	}, SpecTimeout(5*time.Minute))

	It("refuses a child that existed before, as a run does, and names the field manager that wrote it [F29]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(handleWithCounts))
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "a"}, Data: map[string]string{"key": "theirs"}}
		Expect(w.Client.Create(ctx, theirs)).To(Succeed())
		w.Create(ctx, "item", config(map[string]data{"a": {"key": "1"}}))
		Eventually(func(g Gomega) {
			di := w.ReadItem(ctx, "item")(g)
			g.Expect(di.Status.LastError).NotTo(BeNil())
			g.Expect(di.Status.LastError.Message).To(ContainSubstring("already exists, belongs to the field manager"))
			_, err := declarative.Plan(ctx, w.Client, w.Client, declarative.HandlerFunc(handleWithCounts), w.options, di)
			g.Expect(err).To(MatchError(ContainSubstring("is not adopted")))
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		Expect(w.Read(ctx, "a").Data).To(Equal(map[string]string{"key": "theirs"}))
	}, SpecTimeout(5*time.Minute))

	It("adopts a child of a kind that allows this, and keeps the child when the item is deleted [F29]", func(ctx SpecContext) {
		kind := configMapKind
		kind.Adopt = "ifUnowned"
		w := newEnv(ctx, kind).start(declarative.HandlerFunc(handleWithCounts))
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "a"}, Data: map[string]string{"key": "theirs"}}
		Expect(w.Client.Create(ctx, theirs)).To(Succeed())
		w.CreateAndRun(ctx, "item", config(map[string]data{"a": {"key": "1"}}))
		Expect(w.Read(ctx, "a").Data).To(Equal(map[string]string{"key": "1"}))
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).NotTo(BeNil())
	}, SpecTimeout(5*time.Minute))
})
