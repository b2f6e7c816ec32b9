// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runcommand "github.com/deployerkit/deployerkit/cmd/deployerkit/run"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/tree"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	exampleItem = `apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata: {name: example, namespace: demo}
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  target: {name: cluster}
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    manifests:
    - policy: manage
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: example, namespace: default}}
`
	exampleTarget = `apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Target
metadata: {name: cluster, namespace: demo}
spec: {type: landscaper.gardener.cloud/kubernetes-cluster, config: {kubeconfig: "{kubeconfig}"}}
`
)

// runningExample runs `deployerkit run` with the manifest deployer until the example has succeeded.
type runningExample struct {
	cfg        *rest.Config
	metrics    string // URL
	kubeconfig string
	tree       []string // arguments of the printed command `deployerkit tree`
}

// runExample starts the example. The command ends with the spec.
func runExample(ctx context.Context) runningExample {
	GinkgoHelper()
	running, cancel := context.WithCancel(ctx)
	metrics := findFreeAddress()
	out, progress := gbytes.NewBuffer(), gbytes.NewBuffer()
	cmd := runcommand.NewCommand()
	cmd.SetArgs([]string{
		"--item", writeFile(exampleItem), "--target", writeFile(exampleTarget), "--", manifestProgram,
		"--leader-elect=false", "--metrics-bind-address=" + metrics, "--health-probe-bind-address=0", "--allow-private-hosts",
	})
	cmd.SetOut(out)
	cmd.SetErr(progress)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(running) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended, patience).Should(Receive(BeNil()))
	})
	Eventually(readBuffer(out), patience).Should(ContainSubstring("demo/example  Succeeded"), readBuffer(progress))
	example := runningExample{metrics: "http://" + metrics + "/metrics"}
	Eventually(func(g Gomega) {
		found := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(readBuffer(progress)())
		g.Expect(found).NotTo(BeNil())
		command := regexp.MustCompile(`run: then: .*deployerkit tree (.*)`).FindStringSubmatch(readBuffer(progress)())
		g.Expect(command).NotTo(BeNil())
		example.kubeconfig, example.tree = found[1], strings.Fields(command[1])
	}, patience).Should(Succeed(), readBuffer(progress))
	var err error
	example.cfg, err = clientcmd.BuildConfigFromFlags("", example.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return example
}

// readBuffer returns a function that returns the content of a buffer.
func readBuffer(buffer *gbytes.Buffer) func() string {
	return func() string { return string(buffer.Contents()) }
}

// runTree runs `deployerkit tree` and returns its output.
func runTree(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out := gbytes.NewBuffer()
	cmd := tree.NewCommand()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(out)
	Expect(cmd.ExecuteContext(ctx)).To(Succeed(), readBuffer(out))
	return readBuffer(out)()
}

var _ = Describe("deployerkit run", func() {
	It("reconciles the example once, and prints a complete command for its tree [F86][F88]", func(ctx SpecContext) {
		example := runExample(ctx)
		events := &corev1.EventList{}
		Expect(world.NewClient(GinkgoTB(), example.cfg).List(ctx, events, client.InNamespace("demo"))).To(Succeed())
		for _, event := range events.Items {
			Expect(event.Type).To(Equal(corev1.EventTypeNormal), "%s: %s", event.Reason, event.Message)
		}
		calls := regexp.MustCompile(`deployerkit_call_duration_seconds_count{.*} (\d+)`).FindAllStringSubmatch(get(example.metrics), -1)
		Expect(calls).To(HaveExactElements(HaveExactElements(ContainSubstring("econcile"), Equal("1"))), "the calls of the deployer")

		args := append(slices.Clone(example.tree), "--kubeconfig="+example.kubeconfig)
		Expect(runTree(ctx, args...)).To(And(ContainSubstring("ConfigMap example: Ready"), Not(ContainSubstring("--allow-private-hosts"))))
		Expect(runTree(ctx, "demo/example", "--kubeconfig="+example.kubeconfig)).To(ContainSubstring("--allow-private-hosts"), "the text names the flag")
	})
})
