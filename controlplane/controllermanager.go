// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/internal/gobuild"
	"github.com/deployerkit/deployerkit/internal/process"
)

// healthPoll is how often a starting process is asked whether it is ready.
const healthPoll = 50 * time.Millisecond

// serviceAccountKey is where the API server's envtest puts the key that signs tokens, for serviceaccount-token-controller.
const serviceAccountKey = "sa-signer.key"

// DefaultControllers are the controllers that kube-controller-manager runs unless others are named: workloads,
// garbage collection, namespaces and service accounts.
func DefaultControllers() []string {
	return []string{
		"daemonset-controller", "deployment-controller", "garbage-collector-controller", "job-controller",
		"namespace-controller", "replicaset-controller", "serviceaccount-controller", "statefulset-controller",
	}
}

// StartControllerManager starts kube-controller-manager and returns once it is healthy. No names:
// DefaultControllers(). ctx bounds the start only. Definitions of custom resources should be there before,
// else garbage collection of their dependents takes 41 seconds to begin. Errors: it runs already, its binary
// is missing (ask Assets for it), or it ended, with its last words.
func (cp *ControlPlane) StartControllerManager(ctx context.Context, controllers ...string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	switch {
	case cp.stopped:
		return errors.New("start kube-controller-manager: the control plane is stopped")
	case cp.controllerManager != nil:
		return errors.New("start kube-controller-manager: it runs already")
	case len(gobuild.Missing(cp.assets, []string{controllerManagerName})) > 0:
		return fmt.Errorf("start kube-controller-manager: it is not in %s", cp.assets)
	}
	if len(controllers) == 0 {
		controllers = DefaultControllers()
	}
	kubeconfig, err := cp.KubeconfigFile("")
	if err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	c, err := process.Start(exec.Command(filepath.Join(cp.assets, controllerManagerName),
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--service-account-private-key-file="+filepath.Join(cp.dir, serviceAccountKey),
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	), cp.logs)
	if err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	if err := waitHealthy(ctx, c, fmt.Sprintf("https://127.0.0.1:%d/healthz", port)); err != nil {
		return errors.Join(fmt.Errorf("start kube-controller-manager: %w", err), c.Stop())
	}
	cp.controllerManager = c
	return nil
}

// StopControllerManager ends it; it can be started again. Nothing happens if it does not run.
func (cp *ControlPlane) StopControllerManager() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.controllerManager == nil {
		return nil
	}
	err := cp.controllerManager.Stop()
	cp.controllerManager = nil
	return err
}

// freePort returns a port that is free at this moment.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port // a tcp listener has no other address
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// waitHealthy polls url until it answers 200, the process ends, or time is over.
func waitHealthy(parent context.Context, c *process.Process, url string) error {
	ctx, cancel := context.WithTimeout(parent, processTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // self-signed, on loopback
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Second}
	tick := time.NewTicker(healthPoll)
	defer tick.Stop()
	for {
		if answersOK(ctx, client, url) {
			return nil
		}
		select {
		case <-parent.Done():
			return context.Cause(parent)
		case <-ctx.Done():
			return fmt.Errorf("not healthy in time: %w", ctx.Err())
		case <-c.Done:
			return fmt.Errorf("it ended: %s", c.LastWords())
		case <-tick.C:
		}
	}
}

func answersOK(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
