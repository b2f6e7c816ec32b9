// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// newLimitedKubeconfig returns the kubeconfig of a user. This user has only the given verbs, for ConfigMaps in the
// namespace of the world.
func (w *env) newLimitedKubeconfig(ctx context.Context, verbs ...string) []byte {
	GinkgoHelper()
	world.GrantRules(ctx, cp.Config, w.Namespace, w.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs})
	user, err := cp.AddUser(w.Namespace)
	Expect(err).NotTo(HaveOccurred())
	out := clientcmdapi.NewConfig()
	out.CurrentContext = "limited"
	out.Contexts["limited"] = &clientcmdapi.Context{Cluster: "limited", AuthInfo: "limited"}
	out.Clusters["limited"] = &clientcmdapi.Cluster{Server: user.Host, CertificateAuthorityData: user.CAData}
	out.AuthInfos["limited"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}
	raw, err := clientcmd.Write(*out)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

var _ = Describe("Status of an item with manifests", func() {
	It("the condition DriftDetection explains why changes by other clients are not detected", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateTarget(ctx, "limited", w.newLimitedKubeconfig(ctx, "get", "create", "patch", "delete"))
		w.Create(ctx, "item", config(nil, w.configMaps(1, "a")...), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "limited" })
		di := w.Finished(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		condition := contract.GetCondition(di.Status.Conditions, manifest.ConditionDriftDetection)
		Expect(condition).NotTo(BeNil())
		Expect(condition.Status).To(Equal(lsv1alpha1.ConditionFalse))
		Expect(condition.Message).To(And(ContainSubstring("configmaps"), ContainSubstring("forbidden")))
		w.remove(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the error names the missing right, and the item succeeds after this right is granted", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateTarget(ctx, "limited", w.newLimitedKubeconfig(ctx, "get", "list", "watch", "create"))
		w.Create(ctx, "item", config(nil, w.configMaps(1, "a")...), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "limited" })
		Eventually(w.item(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError", HaveField("Message",
			And(ContainSubstring("ConfigMap "+w.Namespace+"/cm-0"), ContainSubstring("cannot patch")))))
		world.GrantRules(ctx, cp.Config, w.Namespace, w.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}})
		Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))

	It("an invalid configuration is reported with the unknown field, and the item can still be deleted [H-29]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")...))
		di := w.Update(ctx, "item", config(map[string]any{"deleteTimeOut": "1m"}, w.configMaps(1, "b")...))
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring(`spec.config: unknown field "deleteTimeOut"`))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(w.Read(ctx, "cm-0").Data).To(HaveKeyWithValue("key", "a"))
		w.remove(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Eventually(w.events(ctx, "item")).WithTimeout(patience).Should(ContainElement(HavePrefix("InvalidConfiguration: ")))
	}, SpecTimeout(5*time.Minute))

	It("the error names the immutable field that a manifest changes", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		frozen := func(value string) map[string]any {
			cm := w.configMap("frozen", map[string]string{"key": value})
			cm["immutable"] = true
			return cm
		}
		w.CreateAndRun(ctx, "item", config(nil, frozen("a")))
		di := w.Update(ctx, "item", config(nil, frozen("b")))
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("ConfigMap " + w.Namespace + "/frozen: .data.key: "))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
	}, SpecTimeout(5*time.Minute))
})
