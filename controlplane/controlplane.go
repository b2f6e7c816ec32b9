// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deployerkit/deployerkit/internal/process"
	"github.com/deployerkit/deployerkit/internal/scratch"
)

// processTimeout limits the start and the stop of each process. It is long because the machine may be busy.
const processTimeout = 3 * time.Minute

// cleanUpTimeout is how long cleanUpStart, which cleans up after an interrupted start, waits for the start to fail. The
// wait begins when cleanUpStart has killed the processes of the start.
const cleanUpTimeout = time.Second

// Options configures Start.
type Options struct {
	// CRDs are the custom resource definitions to install. If CRDs is nil, Landscaper's definitions are installed; see
	// the function [CRDs].
	CRDs []*apiextv1.CustomResourceDefinition
	// ControllerManager specifies whether kube-controller-manager is started after the CRDs are installed.
	ControllerManager bool
	// Controllers are the controllers that kube-controller-manager runs. The default is DefaultControllers().
	Controllers []string
	// APIServerFlags are additional flags for the API server. The keys are the flag names without leading dashes.
	APIServerFlags map[string][]string
	// Assets is a directory that contains the binaries. If it is empty, the function [FindAssets] finds or builds them.
	Assets string
	// Progress receives a line for each long step. The default is os.Stderr.
	Progress io.Writer
	// Logs receives the output of the processes. This field is optional.
	Logs io.Writer
}

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	// Config is a client config with administrator rights and without client-side throttling. Copy it before you change
	// it.
	Config *rest.Config

	env    *envtest.Environment
	assets string
	dir    string // contains the data, the certificates and the kubeconfig files; Stop removes it
	logs   io.Writer

	temporary *scratch.Directory // the directory `dir`

	mu                sync.Mutex
	stopped           bool
	apiServerDown     bool
	etcdDown          bool
	controllerManager *process.Process
}

// Start finds or builds the binaries, starts the processes and installs the CRDs. It returns when everything is ready.
// The context limits only the start. The control plane runs until Stop is called or this process ends. If this process
// is killed, its directory remains until the next call of Start, in any process.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	assets := o.Assets
	if assets == "" {
		var err error
		if assets, err = FindAssets(ctx, AssetsOptions{ControllerManager: o.ControllerManager, Progress: o.Progress}); err != nil {
			return nil, err // the error of Assets is a complete line
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	temporary, err := scratch.New("deployerkit-envtest-", killAbandoned)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	dir := temporary.Path
	cp := &ControlPlane{assets: assets, dir: dir, temporary: temporary, logs: o.Logs, env: newEnvironment(assets, dir, o)}
	started := make(chan struct{})
	go func() { defer close(started); err = cp.start(ctx, o) }()
	select {
	case <-started:
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("start control plane: %w", context.Cause(ctx)), cp.cleanUpStart(started))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), cp.Stop())
	}
	return cp, nil
}

// cleanUpStart cleans up when the caller of Start no longer waits. The goroutine that runs the start cannot be
// cancelled. On Linux, cleanUpStart kills the processes of the start, so that the start usually fails. If the start
// does not fail within cleanUpTimeout, its goroutine continues in the background until its own time limit. On other
// systems, cleanUpStart waits for the end of the start.
func (cp *ControlPlane) cleanUpStart(started <-chan struct{}) error {
	if !killChildren(cp.dir) {
		<-started
		return cp.Stop()
	}
	limit := time.NewTimer(cleanUpTimeout)
	defer limit.Stop()
	again := time.NewTicker(cleanUpTimeout / 20)
	defer again.Stop()
	for {
		select {
		case <-started:
			return cp.Stop()
		case <-again.C:
			killChildren(cp.dir) // the start may have started another process
		case <-limit.C:
			return cp.temporary.Remove()
		}
	}
}

func (cp *ControlPlane) start(ctx context.Context, o Options) error {
	config, err := cp.env.Start()
	if err != nil {
		return err
	}
	// envtest creates this directory for webhooks, which the control plane does not use. If this process is killed, the
	// directory would remain.
	if err := os.RemoveAll(cp.env.WebhookInstallOptions.LocalServingCertDir); err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	cp.Config = config
	if o.ControllerManager {
		return cp.StartControllerManager(ctx, o.Controllers...)
	}
	return nil
}

// newEnvironment returns an envtest environment. It sets all settings that envtest would otherwise read from
// environment variables, and all paths of binaries that envtest would otherwise download.
func newEnvironment(assets, dir string, o Options) *envtest.Environment {
	existing := false
	env := &envtest.Environment{
		UseExistingCluster:       &existing,
		ControlPlaneStartTimeout: processTimeout,
		ControlPlaneStopTimeout:  processTimeout,
		CRDs:                     o.CRDs,
	}
	if o.CRDs == nil {
		env.CRDs = CRDs()
	}
	env.CRDInstallOptions.MaxTime = processTimeout
	server := env.ControlPlane.GetAPIServer()
	server.Path = filepath.Join(assets, apiServerName)
	server.CertDir = dir // envtest does not remove this directory, so a new start reuses the certificates
	server.Out, server.Err = o.Logs, o.Logs
	// With this flag, the stopping server waits 2 s for open watches to end. Without it, the server waits 60 s.
	server.Configure().Set("shutdown-send-retry-after", "true")
	for flag, values := range o.APIServerFlags {
		server.Configure().Set(flag, values...)
	}
	env.ControlPlane.Etcd = &envtest.Etcd{
		Path: filepath.Join(assets, etcdName), Out: o.Logs, Err: o.Logs,
		DataDir: filepath.Join(dir, etcdDataName), // envtest does not remove this directory, so the data survives a stop
	}
	env.ControlPlane.KubectlPath = filepath.Join(assets, kubectlName)
	return env
}

// Stop stops all processes and removes their data. Further calls do nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true
	var errs []error
	if cp.controllerManager != nil {
		errs = append(errs, cp.controllerManager.Stop())
	}
	errs = append(errs, cp.env.Stop(), cp.temporary.Remove())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop control plane: %w", err)
	}
	return nil
}
