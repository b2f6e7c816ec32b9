// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

func TestGaleraDeployer(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "the Galera deployer")
}

var _ = Describe("Galera deployer", func() {
	It("runs against any cluster with the file that the guide applies [Y10]", func(ctx SpecContext) {
		cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		scheme, err := deployerlib.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(cp.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := cp.WriteKubeconfig("")
		Expect(err).NotTo(HaveOccurred())
		cmd := deployermain.Command(program)
		cmd.SetArgs([]string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- cmd.ExecuteContext(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended, "30s").Should(Receive(BeNil()))
		})

		By("following the guide")
		Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}})).To(Succeed())
		Expect(c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "cluster"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
		})).To(Succeed())
		files, err := os.ReadFile(filepath.Join("..", "item.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for document := range bytes.SplitSeq(files, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			Expect(yaml.UnmarshalStrict(document, object)).To(Succeed())
			Expect(c.Create(ctx, object)).To(Succeed())
		}
		item, key := &lsv1alpha1.DeployItem{}, client.ObjectKey{Namespace: "demo", Name: "galera"}
		tells := func(g Gomega, texts ...string) {
			g.Expect(c.Get(ctx, key, item)).To(Succeed())
			g.Expect(item.Status.Conditions).NotTo(BeEmpty())
			for _, text := range texts {
				g.Expect(item.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring(text))))
			}
		}
		Eventually(tells, "30s").WithArguments("blocked by certificates: Secret demo/galera-tls: the issuer has not answered").Should(Succeed())

		By("playing the issuer")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "galera-tls"}}
		answer := []byte(`{"stringData": {"tls.crt": "none", "tls.key": "none"}}`)
		Expect(c.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", answer))).To(Succeed())
		Eventually(tells, "30s").WithArguments("haproxy, public-service blocked by database: StatefulSet.apps demo/galera").Should(Succeed())
		database := &appsv1.StatefulSet{}
		Expect(c.Get(ctx, key, database)).To(Succeed())
		Expect(database.Spec.Template.Spec.Volumes[1].Secret.SecretName).To(Equal("galera-tls"))

		By("deleting the item")
		Expect(c.Delete(ctx, item)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, item)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, key, database)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
		}, "30s").Should(Succeed())
	})
})
