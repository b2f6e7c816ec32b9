// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// namespace creates a namespace with a Context.
func namespace(ctx SpecContext, name string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Expect(ls.EnsureContext(ctx, name)).To(Succeed())
}

// ensureQuietNamespace creates the namespace of the items that are not attacked, unless another spec has created it.
func ensureQuietNamespace(ctx SpecContext) {
	GinkgoHelper()
	err := c.Get(ctx, client.ObjectKey{Name: quiet}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		namespace(ctx, quiet)
		return
	}
	Expect(err).NotTo(HaveOccurred())
}

// createTarget creates a Target.
func createTarget(ctx SpecContext, namespace, name string, kubeconfig []byte) {
	GinkgoHelper()
	content, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(content)},
	})).To(Succeed())
}

// newItem returns an item of the manifest deployer with the given manifests.
func newItem(namespace, name, target string, manifests ...map[string]any) *lsv1alpha1.DeployItem {
	di := ls.Item(namespace, name, manifest.Type, map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": manifests,
	})
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	return di
}

// configMap returns a small manifest.
func configMap(name string) map[string]any {
	return map[string]any{"manifest": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": name}, "data": map[string]any{"k": "v"},
	}}
}

// newMockItem returns an item of the mock deployer, which needs no target.
func newMockItem(namespace, name string) *lsv1alpha1.DeployItem {
	return ls.Item(namespace, name, mock.Type, `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"}`)
}

// start starts a program without a memory limit. The program is killed at the end of the spec.
func start(program string, args ...string) *gexec.Session {
	GinkgoHelper()
	args = append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0", "--grace-period=2s"}, args...)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--metrics-bind-address=") }) {
		args = append(args, "--metrics-bind-address=0")
	}
	if program == manifestDeployer {
		args = append(args, "--allow-private-hosts")
	}
	cmd := exec.Command(program, args...) //nolint:gosec // built here
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "GOGC=") })
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return session
}

// isWorking waits until the deployer has started the run of an item.
func isWorking(ctx SpecContext, di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got, err := ls.Get(ctx, client.ObjectKeyFromObject(di))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Status.Phase).NotTo(BeEmpty())
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// readPeakMemory returns the peak memory of a process in bytes, as the kernel reports it.
func readPeakMemory(session *gexec.Session) (int, error) {
	pid := session.Command.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}

// findFreeAddress returns an address on which nothing listens.
func findFreeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return l.Addr().String()
}
