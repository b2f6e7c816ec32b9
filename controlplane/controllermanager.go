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

// healthPoll is the interval between two health checks of a process that is starting.
const healthPoll = 50 * time.Millisecond

// serviceAccountKey is the file in which envtest stores the key for signing tokens. The serviceaccount-token-controller
// needs this file.
const serviceAccountKey = "sa-signer.key"

// DefaultControllers returns the controllers that StartControllerManager runs by default. They cover workloads, garbage
// collection, namespaces and service accounts.
func DefaultControllers() []string {
	return []string{
		"daemonset-controller", "deployment-controller", "garbage-collector-controller", "job-controller",
		"namespace-controller", "replicaset-controller", "serviceaccount-controller", "statefulset-controller",
	}
}

// StartControllerManager starts kube-controller-manager and returns when it is healthy. If no controllers are given, it
// runs DefaultControllers(). The context limits only the start. Create custom resource definitions before you call
// StartControllerManager. For the dependents of custom resources that are defined later, garbage collection begins only
// after 41 seconds. StartControllerManager returns an error if kube-controller-manager is already running, or if its
// binary is missing (set AssetsOptions.ControllerManager). If the new process ends before it is healthy, the error
// contains the last output of this process.
func (cp *ControlPlane) StartControllerManager(ctx context.Context, controllers ...string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	switch {
	case cp.stopped:
		return errors.New("start kube-controller-manager: the control plane is stopped")
	case cp.controllerManager != nil:
		return errors.New("start kube-controller-manager: it is already running")
	case len(gobuild.ListMissing(cp.assets, []string{controllerManagerName})) > 0:
		return fmt.Errorf("start kube-controller-manager: program not found in %s", cp.assets)
	}
	if len(controllers) == 0 {
		controllers = DefaultControllers()
	}
	kubeconfig, err := cp.WriteKubeconfig("")
	if err != nil {
		return err
	}
	port, err := findFreePort(ctx)
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

// StopControllerManager stops kube-controller-manager. It does nothing if kube-controller-manager is not running.
// StartControllerManager can start it again.
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

// findFreePort returns a port that is currently free.
func findFreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port // a TCP listener always has a *net.TCPAddr
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// waitHealthy polls url until it responds with 200. It returns an error if the process ends or the time limit passes
// before that.
func waitHealthy(parent context.Context, c *process.Process, url string) error {
	ctx, cancel := context.WithTimeout(parent, processTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // self-signed, on loopback
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Second}
	tick := time.NewTicker(healthPoll)
	defer tick.Stop()
	for {
		if isHealthy(ctx, client, url) {
			return nil
		}
		select {
		case <-parent.Done():
			return context.Cause(parent)
		case <-ctx.Done():
			return fmt.Errorf("it did not become healthy in time: %w", ctx.Err())
		case <-c.Done:
			return fmt.Errorf("kube-controller-manager ended: %s", c.LastLine())
		case <-tick.C:
		}
	}
}

func isHealthy(ctx context.Context, client *http.Client, url string) bool {
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
