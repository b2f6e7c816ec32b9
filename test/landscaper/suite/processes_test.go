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

// deployerEnv makes the test binary a deployer: the example of a declarative one has no program of its own.
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

// runRedis is the main of the Redis deployer.
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

// processes are the running deployers by name. Specs replace them; the suite kills what is left.
var processes = map[string]*gexec.Session{}

// flags keep processes apart and make a takeover take seconds.
var flags = []string{
	"--metrics-bind-address=0", "--health-probe-bind-address=0", "--grace-period=5s",
	"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s",
}

// deployers are the command lines of our deployers.
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

// command is a program of this module with the deployers' access.
func command(program string, args ...string) *exec.Cmd {
	return exec.Command(programs[program], append([]string{"--kubeconfig=" + access}, args...)...) //nolint:gosec // built here
}

// start starts a deployer under a name, so that there can be several of a kind.
func start(name, kind string) {
	GinkgoHelper()
	session, err := gexec.Start(deployers[kind](), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	processes[name] = session
}

// kill ends a deployer without giving it a chance to clean up.
func kill(name string) {
	if p := processes[name]; p != nil {
		p.Kill().Wait(patience)
		delete(processes, name)
	}
}

func killAll() {
	for name := range processes {
		kill(name)
	}
}
