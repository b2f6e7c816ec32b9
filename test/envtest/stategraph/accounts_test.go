// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// newRule returns a rule with the given verbs for resources of the core group.
func newRule(verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Verbs: verbs, Resources: resources}
}

// createUser creates a user that has only the given rights, in the whole cluster. It returns the kubeconfig of this
// user.
func (w *env) createUser(ctx context.Context, name string, rules ...rbacv1.PolicyRule) []byte {
	GinkgoHelper()
	user := w.Namespace + "-" + name
	world.GrantRules(ctx, cp.Config, user, "", rules...)
	config, err := cp.AddUser(user)
	Expect(err).NotTo(HaveOccurred())
	out := clientcmdapi.NewConfig()
	out.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	out.CurrentContext = "x"
	raw, err := clientcmd.Write(*out)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

// onTarget returns a function that makes an item use another Target.
func onTarget(name string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = name }
}
