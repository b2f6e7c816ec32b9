// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// withStrategy returns a ChildKind for ConfigMaps with the given update strategy.
func withStrategy(update declarative.UpdateStrategy) declarative.ChildKind {
	kind := configMapKind
	kind.Update = update
	return kind
}

var _ = Describe("Update strategies of children [R15]", func() {
	It("Apply keeps fields of other managers [R15]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, withStrategy(declarative.StrategyApply)), configMap("a", data{"key": "1", "gone": "x"}))
		l.setForeignField(ctx, "a", "theirs")
		uid := l.Read(ctx, "a").UID
		l.setChildren(ctx, configMap("a", data{"key": "2"}))
		Expect(l.Read(ctx, "a")).To(And(HaveField("UID", uid), HaveField("Data", data{"key": "2", "seen": "theirs"})))
	}, SpecTimeout(5*time.Minute))

	It("Replace removes fields of other managers when the child changes, and not before [R15, F24]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, withStrategy(declarative.StrategyReplace)), configMap("a", data{"key": "1"}))
		uid := l.Read(ctx, "a").UID
		l.setForeignField(ctx, "a", "theirs")
		l.RunAgain(ctx, "item")
		l.WaitUntilQuiet(ctx)
		Expect(l.Read(ctx, "a").Data).To(Equal(data{"key": "1", "seen": "theirs"}))
		l.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Data["key"] = "edited" })
		Eventually(l.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Data", data{"key": "1", "seen": "theirs"}))
		l.setChildren(ctx, configMap("a", data{"key": "2"}))
		Expect(l.Read(ctx, "a")).To(And(HaveField("UID", uid), HaveField("Data", data{"key": "2"})))
		l.expectNoRequests(ctx)
	}, SpecTimeout(5*time.Minute))

	It("Replace keeps fields of other managers after a restart [F27]", func(ctx SpecContext) {
		w := newEnv(ctx, withStrategy(declarative.StrategyReplace)).start(declarative.HandlerFunc(handleWithCounts))
		w.CreateAndRun(ctx, "item", config(map[string]data{"a": {"key": "1"}}))
		w.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Data["more"] = "theirs" })
		w.Manager.Stop()
		before := w.Counter.Snapshot()
		w.start(declarative.HandlerFunc(handleWithCounts))
		w.RunAgain(ctx, "item")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero())
		Expect(w.Read(ctx, "a").Data).To(Equal(data{"key": "1", "more": "theirs"}))
	}, SpecTimeout(5*time.Minute))

	It("Replace slows down a fight with another client, and corrects the child after it [F23, F24]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, withStrategy(declarative.StrategyReplace))
		w.options.Fights = observe.FightOptions{FirstDelay: 3 * time.Second, MaxDelay: 3 * time.Second}
		w.options.MinInterval = 50 * time.Millisecond
		l := runItem(ctx, w, configMap("a", data{"key": "1"}))
		before := l.Counter.Snapshot()
		fight, stop := context.WithTimeout(ctx, 6*time.Second)
		defer stop()
		for fight.Err() == nil {
			if cm := l.Read(ctx, "a"); cm.Data["key"] == "1" {
				theirs := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"theirs"}}`))
				Expect(l.Client.Patch(ctx, cm, theirs, client.FieldOwner("fighter"))).To(Succeed())
			}
			select {
			case <-fight.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		_, writes := l.GetRequestCounts(before)
		Expect(writes).To(BeNumerically("<=", 4), "two at once, and then one each 3 s")
		Eventually(l.Condition(ctx, "item", managed.ConditionContested)).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", And(ContainSubstring("configmaps "+l.Namespace+"/a"), ContainSubstring("data.key")))))
		Eventually(l.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Data", data{"key": "1"}))
		Eventually(l.Condition(ctx, "item", managed.ConditionContested)).WithTimeout(patience).Should(BeNil(), "when it is over")
	}, SpecTimeout(5*time.Minute))

	It("Apply empties a child that the handler returns as a typed object without fields [F25]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, withStrategy(declarative.StrategyApply)), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: data{"key": "1"}})
		l.setChildren(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		Expect(l.Read(ctx, "a").Data).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("Recreate deletes and creates a child only if it differs [R15]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, withStrategy(declarative.StrategyRecreate)), configMap("a", data{"key": "1"}))
		uid := l.Read(ctx, "a").UID
		l.setForeignField(ctx, "a", "theirs")
		l.setChildren(ctx, configMap("a", data{"key": "1"}))
		Expect(l.Read(ctx, "a").UID).To(Equal(uid))
		l.expectNoRequests(ctx)
		l.setChildren(ctx, configMap("a", data{"key": "2"}))
		Eventually(l.Data(ctx, "a")).WithTimeout(patience).Should(And(Not(BeNil()), HaveField("UID", Not(Equal(uid))), HaveField("Data", data{"key": "2"})))
	}, SpecTimeout(5*time.Minute))

	It("OnDelete changes a child only after another client has deleted it [R15]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, withStrategy(declarative.StrategyOnDelete)), configMap("a", data{"key": "1"}))
		uid := l.Read(ctx, "a").UID
		l.setChildren(ctx, configMap("a", data{"key": "2"}))
		Expect(l.Read(ctx, "a")).To(And(HaveField("UID", uid), HaveField("Data", data{"key": "1"})))
		l.expectNoRequests(ctx)
		Expect(l.Client.Delete(ctx, l.Read(ctx, "a"))).To(Succeed())
		Eventually(l.Data(ctx, "a")).WithTimeout(patience).Should(And(Not(BeNil()), HaveField("Data", data{"key": "2"})))
		l.WaitUntilQuiet(ctx)
		l.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Labels = nil })
		Eventually(l.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Labels", HaveKey(ownership.LabelItem)), "the owner label is restored nevertheless")
	}, SpecTimeout(5*time.Minute))
})

// grantVerbs grants a user rights in the namespace of the world.
func (w *env) grantVerbs(ctx context.Context, user string, verbs ...string) {
	GinkgoHelper()
	world.GrantRules(ctx, cp.Config, user, w.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs})
}

// setTargetUser changes the user of the World's Target to a new user. It grants this user rights in the namespace of
// the world.
func (w *env) setTargetUser(ctx context.Context, user string, verbs ...string) {
	GinkgoHelper()
	w.grantVerbs(ctx, user, verbs...)
	access, err := cp.AddUser(user)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.Load(cp.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	current := config.Contexts[config.CurrentContext]
	config.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}
	kubeconfig, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	Expect(err).NotTo(HaveOccurred())
	target := &lsv1alpha1.Target{}
	Expect(w.Client.Get(ctx, w.Key("cluster"), target)).To(Succeed())
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(w.Client.Update(ctx, target)).To(Succeed())
}

var _ = Describe("Update strategies that read", func() {
	It("reads each child at most once after each change, and not at all when nothing changed [R15, R27]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, withStrategy(declarative.StrategyRecreate), secretKind)
		w.options.Children[1].Update = declarative.StrategyOnDelete
		w.options.Children = append(w.options.Children, declarative.ChildKind{APIVersion: "v1", Kind: "Service", Update: declarative.StrategyReplace})
		w.options.Resync = 200 * time.Millisecond
		l := runItem(ctx, w, configMap("a", data{"key": "1"}),
			object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "b"}, "stringData": object{"password": "x"}},
			object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "c"}, "spec": object{"ports": []any{object{"port": 80}}}},
		)
		calls, version := l.handler.getCallCount("item")(), l.env.Get(ctx, "item").ResourceVersion
		Eventually(l.handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">", calls+3))
		reads, writes := l.GetRequestCounts(l.before)
		Expect(reads+writes).To(BeZero(), "requests: %s", l.Counter.Snapshot().Since(l.before))
		Expect(l.env.Get(ctx, "item").ResourceVersion).To(Equal(version))

		By("editing a child as another client")
		l.setForeignField(ctx, "a", "theirs")
		Eventually(func() string {
			child, _ := l.handler.last("item").Children.Find("ConfigMap", "a")
			return child.GetString("data", "seen")
		}).WithTimeout(patience).Should(Equal("theirs"))
		calls = l.handler.getCallCount("item")()
		Eventually(l.handler.getCallCount("item")).WithTimeout(patience).Should(BeNumerically(">", calls+3))
		reads, writes = l.GetRequestCounts(l.before)
		Expect(reads+writes).To(BeNumerically("<=", 1), "requests: %s", l.Counter.Snapshot().Since(l.before))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Restricted targets", func() {
	It("watches children in the namespaces that the target allows [R6, R8]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.setTargetUser(ctx, "narrow-"+w.Namespace, "get", "list", "watch", "create", "patch", "delete")
		handler := newRecordingHandler(declarative.HandlerFunc(handleWithCounts))
		w.start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		w.setForeignField(ctx, "b", "here")
		Eventually(w.status(ctx, "item")).WithTimeout(testtime.ScaleTimeout(5 * time.Second)).Should(HaveKeyWithValue("seen", object{"a": "", "b": "here"}))
		w.RunAgain(ctx, "item")
		reads, writes := w.GetRequestCounts(before)
		Expect(reads+writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("reads children at each call if the target allows no watch [R6, R8]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.setTargetUser(ctx, "blind-"+w.Namespace, "get", "create", "patch", "delete")
		w.options.Resync = 300 * time.Millisecond
		w.start(declarative.HandlerFunc(handleWithCounts))
		w.CreateAndRun(ctx, "item", config(two))
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{"a": "", "b": ""}))
		w.setForeignField(ctx, "b", "here")
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{"a": "", "b": "here"}))
		Expect(w.Client.Delete(ctx, w.Read(ctx, "a"))).To(Succeed())
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).ShouldNot(BeNil())
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "b")).To(BeNil())
	}, SpecTimeout(5*time.Minute))
})
