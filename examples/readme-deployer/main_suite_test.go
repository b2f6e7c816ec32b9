// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	gettingstarted "github.com/deployerkit/deployerkit/examples/getting-started"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

func TestReadmeDeployer(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "the deployer of the README")
}

// patience is the time limit of each wait.
const patience = "1m"

var (
	cp *controlplane.ControlPlane
	c  client.Client
)

// BeforeSuite starts the deployer in the same way as the program does. All specs use this deployer.
var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := cp.WriteKubeconfig("")
	Expect(err).NotTo(HaveOccurred())
	cmd := deployermain.Command(program)
	cmd.SetArgs([]string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended, patience).Should(Receive(BeNil()))
	})
})

// apply creates the objects in a file. It skips objects that already exist.
func apply(ctx context.Context, file []byte, err error) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	for document := range bytes.SplitSeq(file, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		Expect(yaml.UnmarshalStrict(document, object)).To(Succeed())
		Expect(client.IgnoreAlreadyExists(c.Create(ctx, object))).To(Succeed())
	}
}

var _ = Describe("Deployer of the README", func() {
	It("exports a password and deletes it with the item, with two methods and no code about Landscaper [L1, F48]", func(ctx SpecContext) {
		Expect(c.Create(ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})).To(Succeed())
		file, err := os.ReadFile("item.yaml")
		apply(ctx, file, err)
		di, key := &lsv1alpha1.DeployItem{}, client.ObjectKey{Namespace: "default", Name: "mine"}
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, di)).To(Succeed())
			g.Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		}, patience).Should(Succeed())
		secret := &corev1.Secret{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: di.Status.ExportReference.Name}, secret)).To(Succeed())
		Expect(string(secret.Data[lsv1alpha1.DataObjectSecretDataKey])).To(MatchRegexp(`^{"password":"\w{12}"}$`))

		Expect(c.Delete(ctx, di)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, di)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
		}, patience).Should(Succeed())
	})

	for _, revision := range []contract.Revision{contract.RevisionJobID, contract.RevisionAnnotation} {
		It("exports a password of one Installation that another one imports, under the "+string(revision)+" revision [F48]", func(ctx SpecContext) {
			landscapertest.StartManager(GinkgoTB(), cp.Config, manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}}))
			ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: revision})
			key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "getting-started", Name: name} }

			By("preparing the cluster")
			cluster, err := gettingstarted.Files.ReadFile("cluster.yaml")
			apply(ctx, cluster, err)
			access := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "getting-started", Name: "workload"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
			}
			Expect(client.IgnoreAlreadyExists(c.Create(ctx, access))).To(Succeed())

			By("applying the importing Installation, which has nothing to import yet")
			app, err := gettingstarted.Files.ReadFile("app.yaml")
			apply(ctx, app, err)
			Expect(ls.Install(ctx, key("app"))).To(MatchError(ContainSubstring(`import password`)))

			By("applying the exporting one")
			password, err := gettingstarted.Files.ReadFile("password.yaml")
			apply(ctx, password, err)
			Expect(ls.Install(ctx, key("password"))).To(Succeed())
			data := &lsv1alpha1.DataObject{}
			Expect(c.Get(ctx, key("app-password"), data)).To(Succeed())
			Expect(string(data.Data.RawMessage)).To(MatchRegexp(`^"\w{12}"$`))

			Expect(ls.Install(ctx, key("app"))).To(Succeed())
			in := &lsv1alpha1.Installation{}
			Expect(c.Get(ctx, key("app"), in)).To(Succeed())
			Expect(in.Status.InstallationPhase).To(Equal(lsv1alpha1.InstallationPhases.Succeeded))
			Expect(in.Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
			secret := &corev1.Secret{}
			Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "app"}, secret)).To(Succeed())
			Expect(`"` + string(secret.Data["password"]) + `"`).To(Equal(string(data.Data.RawMessage)))

			By("installing it again")
			Expect(ls.Install(ctx, key("password"))).To(Succeed())

			By("deleting both")
			Expect(ls.Uninstall(ctx, key("app"))).To(Succeed())
			Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
			Expect(ls.Uninstall(ctx, key("password"))).To(Succeed())
			items := &lsv1alpha1.DeployItemList{}
			Expect(c.List(ctx, items, client.InNamespace("getting-started"))).To(Succeed())
			Expect(items.Items).To(BeEmpty())
			Expect(c.Get(ctx, key("app-password"), data)).To(MatchError(ContainSubstring("not found")))
		})
	}
})
