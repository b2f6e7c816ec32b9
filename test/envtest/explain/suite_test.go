// SPDX-License-Identifier: Apache-2.0

// Package explain_test runs the command explain against a real API server, with the rights of users who may not read
// everything. It also reads the history of a deployer from the secured port of the deployer.
package explain_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestExplain(t *testing.T) { world.Run(t, "explain") }

var _ = BeforeSuite(func(ctx SpecContext) { cp = world.StartControlPlane(ctx, controlplane.Options{}) })

// items is an RBAC rule that allows reading deploy items.
var items = rbacv1.PolicyRule{APIGroups: []string{"landscaper.gardener.cloud"}, Resources: []string{"deployitems"}, Verbs: []string{"get"}}

// user is a service account with some rights in its namespace.
type user struct {
	config *rest.Config
	// kubeconfig is the path of the kubeconfig of the user.
	kubeconfig string
}

// newUser creates a service account with some rights in its namespace, and a kubeconfig with a token for this account.
func newUser(ctx context.Context, w *world.World, name string, rules ...rbacv1.PolicyRule) user {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	Expect(w.Client.Create(ctx, account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(w.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
	if len(rules) > 0 {
		world.GrantRules(ctx, cp.Config, "system:serviceaccount:"+w.Namespace+":"+name, w.Namespace, rules...)
	}
	config := rest.AnonymousClientConfig(cp.Config)
	config.BearerToken = request.Status.Token
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cp.Config.Host, CertificateAuthorityData: cp.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.Namespace}},
		CurrentContext: "x",
	}, file)).To(Succeed())
	return user{config: config, kubeconfig: file}
}

// served matches the log message with the address of the history endpoint.
var served = regexp.MustCompile(`"msg"="serving the history of reconciles" "address"="([^"]*)"`)

// start runs the manifest deployer for the items of a world. The deployer serves its history with the same handler as
// the program manifest-deployer. start returns the address of the history.
func start(ctx context.Context, w *world.World) string {
	GinkgoHelper()
	addresses := make(chan string, 1)
	log := funcr.New(func(prefix, line string) {
		_, _ = io.WriteString(GinkgoWriter, prefix+": "+line+"\n")
		if found := served.FindStringSubmatch(line); found != nil {
			addresses <- found[1]
		}
	}, funcr.Options{})
	args := manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}})
	args.Type = w.Type
	ls, host, err := deployermain.NewManagers(deployermain.Options{
		Host: cp.Config, Namespace: w.Namespace, MetricsBindAddress: "0", HealthProbeBindAddress: "0", HistoryBindAddress: "127.0.0.1:0", Logger: log,
		Election: deployermain.Election{Namespace: w.Namespace},
	}, &args)
	Expect(err).NotTo(HaveOccurred())
	skip := true
	args.Options.SkipNameValidation = &skip
	Expect(deployerlib.Add(logr.Discard(), ls, host, args)).To(Succeed())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- ls.Start(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).WithTimeout(world.Patience).Should(Receive(BeNil()))
	})
	var address string
	Eventually(addresses).WithTimeout(world.Patience).Should(Receive(&address))
	return address
}

// fileOf writes content to a new file and returns its path.
func fileOf(content []byte) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "file")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}
