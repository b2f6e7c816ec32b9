// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/declarative/redis"
	"github.com/deployerkit/deployerkit/targets"
)

// deployerEnv is an environment variable. If it is set, the test binary runs a deployer. This is used for the Redis
// example, which has no program of its own.
const deployerEnv = "DEPLOYERKIT_SUITE_DEPLOYER"

func TestMain(m *testing.M) {
	if os.Getenv(deployerEnv) == "redis" {
		if err := runRedis(ctrl.SetupSignalHandler()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runRedis runs the deployer of the Redis example.
func runRedis(ctx context.Context) error {
	ctrl.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	args := redis.Args(targets.Policy{AllowPrivateHosts: true})
	if err := errors.Join(lsv1alpha1.AddToScheme(mgr.GetScheme()), deployerlib.Add(ctrl.Log, mgr, nil, args)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// processes contains the running deployers by name. Specs replace these deployers, and the suite kills the deployers
// that still run at the end.
var processes = map[string]*gexec.Session{}

// flags let several processes run on one machine. With these flags, a process takes over the lease within seconds.
var flags = []string{
	"--metrics-bind-address=0", "--health-probe-bind-address=0", "--grace-period=5s",
	"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s",
}

// deployers contains, for each kind of deployer, a function that returns its command.
var deployers = map[string]func() *exec.Cmd{
	"mock": func() *exec.Cmd { return command("cmd/mock-deployer", slices.Concat(flags)...) },
	"manifest": func() *exec.Cmd {
		return command("cmd/manifest-deployer", slices.Concat(flags, []string{"--allow-private-hosts", "--enable-self-targets", "--default-strategy=update"})...)
	},
	"galera":   func() *exec.Cmd { return command("examples/galera/galera-deployer", slices.Concat(flags)...) },
	"password": func() *exec.Cmd { return command("examples/readme-deployer", slices.Concat(flags)...) },
	"redis": func() *exec.Cmd {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command(self, "--kubeconfig="+access)
		cmd.Env = append(os.Environ(), deployerEnv+"=redis", "KUBECONFIG="+access)
		return cmd
	},
}

// command returns a command that runs a program of this module with the kubeconfig of the deployers.
func command(program string, args ...string) *exec.Cmd {
	return exec.Command(programs[program], append([]string{"--kubeconfig=" + access}, args...)...) //nolint:gosec // built here
}

// start starts a deployer of the given kind under the given name. Several deployers of one kind can run under different
// names.
func start(name, kind string) {
	GinkgoHelper()
	session, err := gexec.Start(deployers[kind](), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	processes[name] = session
}

// killDeployer kills a deployer. The deployer cannot clean up.
func killDeployer(name string) {
	if p := processes[name]; p != nil {
		p.Kill().Wait(patience)
		delete(processes, name)
	}
}

func killDeployers() {
	for name := range processes {
		killDeployer(name)
	}
}
