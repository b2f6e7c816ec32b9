// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	ns = metav1.NamespaceDefault
	// patience is the time limit of each wait. With testFlags, another process can take over the lease within this
	// time, even on a busy machine.
	patience = 2 * time.Minute
)

// testFlags let several processes run on one machine. With these flags, a process takes over the lease within seconds.
var testFlags = []string{
	"--metrics-bind-address=0", "--health-probe-bind-address=0", "--zap-log-level=debug", "--grace-period=5s",
	"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s",
}

// run starts the mock deployer.
func run(args ...string) *gexec.Session {
	GinkgoHelper()
	return start(program, args...)
}

// start starts a program. If the program still runs at the end of the spec, it is killed.
func start(program string, args ...string) *gexec.Session {
	GinkgoHelper()
	args = slices.Concat(testFlags, args)
	session, err := gexec.Start(exec.Command(program, args...), GinkgoWriter, GinkgoWriter) //nolint:gosec // built here
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return session
}

// newLandscaper returns a simulated Landscaper with job IDs.
func newLandscaper(c client.Client) *landscapertest.Landscaper {
	return landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true})
}

// createAndStart creates an item and starts its first job.
func createAndStart(ctx context.Context, ls *landscapertest.Landscaper, name, fields string, change ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	di := ls.Item(ns, name, mock.Type, fmt.Sprintf(`{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"%s}`, fields))
	for _, f := range change {
		f(di)
	}
	Expect(ls.Deploy(ctx, di)).To(Succeed())
	return client.ObjectKeyFromObject(di)
}

// leader returns the holder of the lease of the mock deployer, or "" if there is none.
func leader(ctx context.Context, c client.Client, name string) string {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// writeKubeconfig writes a kubeconfig for config to a file and returns its path.
func writeKubeconfig(config *rest.Config) string {
	GinkgoHelper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*file, path)).To(Succeed())
	return path
}

// writeFile writes content to a new file and returns its path.
func writeFile(content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// findFreeAddress returns an address on which nothing listens.
func findFreeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return l.Addr().String()
}
