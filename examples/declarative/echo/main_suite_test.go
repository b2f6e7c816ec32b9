// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

func TestEchoDeployer(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "the echo deployer")
}

var _ = Describe("Echo deployer of the guide", func() {
	It("runs against any cluster with the files that the guide applies, and plans an item [R46] [F31]", func(ctx SpecContext) {
		cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		scheme, err := deployerlib.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(cp.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		start(ctx, cp.Kubeconfig())

		By("following the guide")
		Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}})).To(Succeed())
		Expect(c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "cluster"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
		})).To(Succeed())
		files, err := os.ReadFile("items.yaml")
		Expect(err).NotTo(HaveOccurred())
		for document := range bytes.SplitSeq(files, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			Expect(yaml.UnmarshalStrict(document, object)).To(Succeed())
			Expect(c.Create(ctx, object)).To(Succeed())
		}
		pod, item := &corev1.Pod{}, &lsv1alpha1.DeployItem{}
		itemKey, key := client.ObjectKey{Namespace: "demo", Name: "hello"}, client.ObjectKey{Namespace: "demo", Name: "hello-echo"}
		running := func(text string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, key, pod)).To(Succeed())
				g.Expect(pod.Spec.Containers[0].Args).To(Equal([]string{text}))
				pod.Status.Phase = corev1.PodRunning
				g.Expect(c.Status().Update(ctx, pod)).To(Succeed())
			}, "30s").Should(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, itemKey, item)).To(Succeed())
				g.Expect(item.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "status: %+v", item.Status)
				g.Expect(string(item.Status.ProviderStatus.Raw)).To(ContainSubstring(`"pod":"Running"`))
			}, "30s").Should(Succeed())
		}
		running("-text=hello")
		service := &corev1.Service{}
		Expect(c.Get(ctx, key, service)).To(Succeed())
		Expect(service.Spec.Selector).To(Equal(map[string]string{"app": "hello-echo"}))
		Expect(pod.Labels).To(HaveKeyWithValue("app", "hello-echo"))

		By("planning another text")
		guide, err := os.ReadFile("../../../docs/declarative.md")
		Expect(err).NotTo(HaveOccurred())
		_, section, _ := strings.Cut(string(guide), "\n## Plan\n")
		Expect(section).To(ContainSubstring("| go run ./examples/declarative/echo plan -f -\n"))
		_, output, _ := strings.Cut(section, "\n```text\n")
		output, _, _ = strings.Cut(output, "```\n")
		before := []string{item.ResourceVersion, pod.ResourceVersion}
		got, err := runPlan(ctx, changed(item), "-f", "-")
		Expect(err).To(MatchError(plan.ErrToDo))
		Expect(got).To(Equal(output))
		got, err = runPlan(ctx, "", "hello", "--namespace", "demo")
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal("DeployItem demo/hello on Target demo/cluster\n0 to do, 2 unchanged\n"))
		Expect(c.Get(ctx, itemKey, item)).To(Succeed())
		Expect(c.Get(ctx, key, pod)).To(Succeed())
		Expect([]string{item.ResourceVersion, pod.ResourceVersion}).To(Equal(before), "nothing was written [F31]")

		By("changing the text")
		base := item.DeepCopy()
		item.Spec.Configuration.Raw = bytes.ReplaceAll(item.Spec.Configuration.Raw, []byte(`"text":"hello"`), []byte(`"text":"bye"`))
		Expect(c.Patch(ctx, item, client.MergeFrom(base))).To(Succeed())
		running("-text=bye")

		By("deleting the Service")
		Expect(c.Delete(ctx, service)).To(Succeed())
		Eventually(func(g Gomega) {
			again := &corev1.Service{}
			g.Expect(c.Get(ctx, key, again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(service.UID))
		}, "30s").Should(Succeed())

		By("deleting the item")
		Expect(c.Delete(ctx, item)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, itemKey, item)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, key, pod)).To(MatchError(ContainSubstring("not found")))
			g.Expect(c.Get(ctx, key, service)).To(MatchError(ContainSubstring("not found")))
		}, "30s").Should(Succeed())
	})
})

// changed returns the item as YAML, with a different text in its configuration.
func changed(item *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	out := item.DeepCopy()
	out.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	out.ManagedFields = nil // kubectl also omits the managed fields
	out.Spec.Configuration.Raw = bytes.ReplaceAll(out.Spec.Configuration.Raw, []byte(`"text":"hello"`), []byte(`"text":"bye"`))
	raw, err := yaml.Marshal(out)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// runPlan runs the subcommand `plan` of the program.
func runPlan(ctx context.Context, input string, args ...string) (string, error) {
	out := &bytes.Buffer{}
	cmd := deployermain.Command(plan.With(program))
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(out)
	cmd.SetArgs(append([]string{"plan"}, args...))
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// start runs the command until the spec ends. Like a user, it passes the kubeconfig in the environment variable
// KUBECONFIG.
func start(ctx context.Context, kubeconfig []byte) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())
	GinkgoT().Setenv("KUBECONFIG", path)
	cmd := deployermain.Command(plan.With(program))
	cmd.SetArgs([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}) // other suites may use the ports
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended, "30s").Should(Receive(BeNil()))
	})
}
