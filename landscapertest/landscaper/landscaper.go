// SPDX-License-Identifier: Apache-2.0

package landscaper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/process"
	"github.com/deployerkit/deployerkit/internal/scratch"
)

// Namespace is the namespace of Landscaper's own objects. Start creates it.
const Namespace = "landscaper-system"

// startTimeout limits the start of each process. It is long because the machine may be busy.
const startTimeout = 2 * time.Minute

// contextPoll is the interval at which WaitForContext polls.
const contextPoll = 100 * time.Millisecond

// Options configures a Landscaper.
type Options struct {
	// PickupTimeout is the time in which a deployer must start a job. Five seconds after this time, Landscaper marks
	// the deploy item as failed. The default is 5 minutes, as in Landscaper.
	PickupTimeout time.Duration
	// Workers is the number of Installations, and also the number of Executions, that are reconciled concurrently. The
	// default is 10. (Landscaper's own default is 1, and its chart sets 30.)
	Workers int
	// Programs is a directory that contains Landscaper's programs. By default, the package function [FindPrograms] finds
	// or builds them.
	Programs string
	// Progress receives a line for each long step. The default is os.Stderr.
	Progress io.Writer
	// Logs receives the output of the processes. By default it is discarded.
	Logs io.Writer
}

// Landscaper is a running instance of Landscaper. Its methods are safe for concurrent use.
type Landscaper struct {
	client     client.Client
	programs   string
	temporary  *scratch.Directory // contains the configuration file and the kubeconfig files; Stop removes it
	config     string
	kubeconfig string
	logs       io.Writer

	mu        sync.Mutex
	processes []*process.Process
}

// Start starts Landscaper on cp and returns when its controllers are running. Landscaper's CRDs must exist on cp. The
// context limits only the start. Landscaper runs until Stop is called or this process ends.
func Start(ctx context.Context, cp *controlplane.ControlPlane, o Options) (*Landscaper, error) {
	if o.Programs == "" {
		var err error
		if o.Programs, err = FindPrograms(ctx, o.Progress); err != nil {
			return nil, err // the error already names its cause
		}
	}
	c, err := client.New(cp.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err == nil {
		err = ensureNamespace(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("start Landscaper: %w", err)
	}
	temporary, err := scratch.New("deployerkit-landscaper-", nil)
	if err != nil {
		return nil, fmt.Errorf("start Landscaper: %w", err)
	}
	dir := temporary.Path
	l := &Landscaper{client: c, programs: o.Programs, temporary: temporary, logs: o.Logs, config: filepath.Join(dir, "config.yaml")}
	l.kubeconfig, err = cp.WriteKubeconfig(dir)
	if err == nil {
		err = os.WriteFile(l.config, []byte(o.buildConfig()), 0o600)
	}
	if err == nil {
		err = l.Restart(ctx)
	}
	if err == nil {
		err = l.WaitForContext(ctx, metav1.NamespaceDefault)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Landscaper: %w", err), l.Stop())
	}
	return l, nil
}

// WaitForContext waits until Landscaper has created the Context "default" in a namespace. An Installation fails if
// Landscaper processes it before this Context exists. Start waits for the Context of the namespace "default"; after the
// creation of any other namespace, call WaitForContext.
func (l *Landscaper) WaitForContext(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("Context"))
	err := wait.PollUntilContextCancel(ctx, contextPoll, true, func(ctx context.Context) (bool, error) {
		err := l.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lsv1alpha1.DefaultContextName}, found)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the Context of namespace %s: %w", namespace, err)
	}
	return nil
}

// StartLandscaper starts Landscaper like Start, but for a test. It fails the test on an error and stops Landscaper at
// the end of the test.
func StartLandscaper(tb testing.TB, cp *controlplane.ControlPlane, o Options) *Landscaper {
	tb.Helper()
	l, err := Start(tb.Context(), cp, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// buildConfig returns the content of Landscaper's configuration file.
func (o Options) buildConfig() string {
	pickup, workers := 5*time.Minute, 10
	if o.PickupTimeout > 0 {
		pickup = o.PickupTimeout
	}
	if o.Workers > 0 {
		workers = o.Workers
	}
	return fmt.Sprintf(`apiVersion: config.landscaper.gardener.cloud/v1alpha1
kind: LandscaperConfiguration
controllers:
  installations: {workers: %[1]d}
  executions: {workers: %[1]d}
  deployItems: {workers: %[1]d}
  contexts: {workers: 1, config: {default: {disable: false}}}
crdManagement: {deployCrd: false}
deployItemTimeouts: {pickup: %[2]s}
lsDeployments:
  lsController: landscaper
  lsMainController: landscaper-main
  webHook: landscaper-webhooks
  deploymentsNamespace: %[3]s
  lsHealthCheckName: landscaper
`, workers, pickup, Namespace)
}

// Restart ends the processes of Landscaper that are still running, and starts them again. It returns when their
// controllers are running.
func (l *Landscaper) Restart(ctx context.Context) error {
	if err := l.Kill(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Each mode of the program runs in a process of its own. The value is the number of controllers in this process.
	for mode, controllers := range map[string]int{"": 2, "central-landscaper": 3} {
		p, err := l.start(ctx, Controller, controllers, l.kubeconfig, []string{"--config=" + l.config}, "LANDSCAPER_MODE="+mode)
		if err != nil {
			return err
		}
		l.processes = append(l.processes, p)
	}
	return nil
}

// Kill ends Landscaper's processes immediately. They cannot clean up. Restart starts them again. The deployers that
// StartDeployer started continue to run.
func (l *Landscaper) Kill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.processes {
		errs = append(errs, p.Kill())
	}
	l.processes = nil
	return errors.Join(errs...)
}

// Stop stops Landscaper and removes its files. The deployers that StartDeployer started continue to run.
func (l *Landscaper) Stop() error {
	// Landscaper does not react to SIGTERM.
	return errors.Join(l.Kill(), l.temporary.Remove())
}

// Deployer is one of Landscaper's own deployers. StartDeployer starts it.
type Deployer struct{ process *process.Process }

// Stop ends the deployer. It does nothing if the deployer has ended.
func (d *Deployer) Stop() error { return d.process.Kill() }

// StartDeployer starts one of Landscaper's own deployers and returns when its controller is running. The name of the
// deployer's program is program, for example ManifestDeployer. The deployer uses the kubeconfig file at the path
// kubeconfig, or Landscaper's kubeconfig file if the path is empty. The deployer processes ten items at a time. It runs
// until Deployer.Stop is called or this process ends.
func (l *Landscaper) StartDeployer(ctx context.Context, program, kubeconfig string) (*Deployer, error) {
	if kubeconfig == "" {
		kubeconfig = l.kubeconfig
	}
	config := filepath.Join(l.temporary.Path, program+".yaml")
	if err := os.WriteFile(config, []byte(deployerConfigurations[program]), 0o600); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p, err := l.start(ctx, program, 1, kubeconfig, []string{"--config=" + config})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &Deployer{process: p}, nil
}

// deployerConfigurations are the configurations of Landscaper's own deployers. In these configurations, each deployer
// processes ten deploy items at a time.
var deployerConfigurations = map[string]string{
	MockDeployer:     `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"Configuration","controller":{"workers":10}}`,
	ManifestDeployer: `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"Configuration","controller":{"workers":10}}`,
	HelmDeployer:     `{"apiVersion":"helm.deployer.landscaper.gardener.cloud/v1alpha1","kind":"Configuration","controller":{"workers":10}}`,
}

// start starts a program and waits until the given number of its controllers have reported that they are running.
func (l *Landscaper) start(ctx context.Context, program string, controllers int, kubeconfig string, args []string, env ...string) (*process.Process, error) {
	cmd := exec.Command(filepath.Join(l.programs, program), args...) //nolint:gosec // one of our own programs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "MY_POD_NAMESPACE="+Namespace, "MY_POD_NAME="+program,
		"LS_HOST_CLIENT_QPS=1000", "LS_HOST_CLIENT_BURST=1000", "LS_RESOURCE_CLIENT_QPS=1000", "LS_RESOURCE_CLIENT_BURST=1000")
	cmd.Env = append(cmd.Env, env...)
	working := newLineCounter("Starting workers", l.logs)
	p, err := process.Start(cmd, working)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for range controllers {
		select {
		case <-working.seen:
			continue
		case <-p.Done:
			return nil, fmt.Errorf("%s ended: %s", program, p.LastLine())
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s did not start in time: %w", program, ctx.Err()), p.Kill())
		}
	}
	return p, nil
}

// ensureNamespace creates the namespace of Landscaper's own objects.
func ensureNamespace(ctx context.Context, c client.Client) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", Namespace, err)
	}
	return nil
}
