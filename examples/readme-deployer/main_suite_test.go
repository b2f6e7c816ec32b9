// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployermain"
)

func TestReadmeDeployer(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "the deployer of the README")
}

var _ = Describe("the deployer of the README", func() {
	It("exports a password and goes without a trace, with two methods and no word about Landscaper [L1]", func(ctx SpecContext) {
		scheme := runtime.NewScheme()
		Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
		Expect(lsv1alpha1.AddToScheme(scheme)).To(Succeed())
		cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		c, err := client.New(cp.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())

		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		kubeconfig, err := cp.KubeconfigFile("")
		Expect(err).NotTo(HaveOccurred())
		cmd := deployermain.Command(program)
		cmd.SetArgs([]string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
		go func() { ended <- cmd.ExecuteContext(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended, "30s").Should(Receive(BeNil()))
		})

		di := item(`{"apiVersion": "example.org/v1", "kind": "Password", "length": 12}`)
		di.UID = ""
		Expect(c.Create(ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})).To(Succeed())
		Expect(c.Create(ctx, di)).To(Succeed())
		key := client.ObjectKeyFromObject(di)
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, di)).To(Succeed())
			g.Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "%+v", di.Status.LastError)
		}, "30s").Should(Succeed())
		secret := &corev1.Secret{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: di.Status.ExportReference.Name}, secret)).To(Succeed())
		Expect(string(secret.Data[lsv1alpha1.DataObjectSecretDataKey])).To(MatchRegexp(`^{"password":"\w{12}"}$`))

		Expect(c.Delete(ctx, di)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, di)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
		}, "30s").Should(Succeed())
	})
})
