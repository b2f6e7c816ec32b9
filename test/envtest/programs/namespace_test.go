// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const mockRBAC = "../../../deployers/mock/rbac.yaml"

var _ = Describe("Deployer with --namespace", func() {
	It("processes the items of this namespace with rights in this namespace only, and writes no item elsewhere [Rx12]", func(ctx SpecContext) {
		home, elsewhere := namespace(ctx, "home-"), namespace(ctx, "elsewhere-")
		user := "system:serviceaccount:default:one-namespace"
		access, err := cp.AddUser(user)
		Expect(err).NotTo(HaveOccurred())
		grantRoles(ctx, mockRBAC, user, "deployerkit:mock-deployer")
		bind(ctx, home, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "deployerkit:mock-deployer"}, user)

		ls := newLandscaper(c)
		foreign := createItemIn(ctx, ls, elsewhere)
		before, err := ls.Get(ctx, foreign)
		Expect(err).NotTo(HaveOccurred())
		session := run("--kubeconfig="+writeKubeconfig(access), "--leader-election-id=one-namespace",
			"--item-selector=user=namespace", "--namespace="+home)
		item := createItemIn(ctx, ls, home)
		Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		job, err := ls.Trigger(ctx, item)
		Expect(err).NotTo(HaveOccurred())
		Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		Expect(ls.Delete(ctx, item)).To(Succeed())
		Expect(ls.Get(ctx, foreign)).To(Equal(before), "its job is still to be picked up")

		Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
		Expect(string(session.Err.Contents())).NotTo(Or(ContainSubstring("forbidden"), ContainSubstring("DATA RACE")))

		By("working there when it is not restricted")
		run("--kubeconfig="+kubeconfig, "--leader-elect=false", "--item-selector=user=namespace")
		Expect(ls.WaitUntilFinished(ctx, foreign)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
	})
})

// createItemIn creates a Target and an item in a namespace and starts the first job of the item.
func createItemIn(ctx SpecContext, ls *landscapertest.Landscaper, home string) types.NamespacedName {
	GinkgoHelper()
	Expect(ls.EnsureContext(ctx, home)).To(Succeed())
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("{}")}}
	secret.Namespace, secret.Name = home, "content"
	Expect(c.Create(ctx, secret)).To(Succeed())
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name = home, "some"
	target.Spec.Type = "example.com/some"
	target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: secret.Name}
	Expect(c.Create(ctx, target)).To(Succeed())
	di := ls.Item(home, "item", mock.Type,
		`{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","export":{"a":1}}`)
	di.Labels = map[string]string{"user": "namespace"}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: home, Name: target.Name}
	Expect(ls.Deploy(ctx, di)).To(Succeed())
	return client.ObjectKeyFromObject(di)
}
