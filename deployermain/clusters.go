// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"cmp"
	"fmt"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// loadConfigs returns the configurations for the host cluster and the Landscaper cluster, which may be the same. The
// function `env` looks up environment variables.
func (f *flags) loadConfigs(env func(string) (string, bool)) (host, landscaper *rest.Config, err error) {
	if host, err = loadConfig("--kubeconfig", f.kubeconfig, env); err != nil {
		return nil, nil, fmt.Errorf("host cluster: %w", err)
	}
	landscaper = host
	if f.landscaperKubeconfig != "" {
		if landscaper, err = loadConfig("--landscaper-kubeconfig", f.landscaperKubeconfig, env); err != nil {
			return nil, nil, fmt.Errorf("landscaper cluster: %w", err)
		}
		hostThrottle.applyTo(host, env)
	}
	resourceThrottle.applyTo(landscaper, env)
	return host, landscaper, nil
}

// loadConfig loads a kubeconfig. If path is empty, it uses the same defaults as kubectl, and then the service account
// of the pod. It disables client-side throttling, because API servers apply API Priority and Fairness.
func loadConfig(flag, path string, env func(string) (string, bool)) (*rest.Config, error) {
	load := config.GetConfig
	if path != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	}
	cfg, err := load()
	switch {
	case clientcmd.IsEmptyConfig(err) && path == "":
		where := "found none in the pod, $KUBECONFIG or ~/.kube/config"
		if set, _ := env("KUBECONFIG"); set != "" {
			where = fmt.Sprintf("$KUBECONFIG names %s, which does not exist", set)
		}
		return nil, fmt.Errorf("load kubeconfig: %s; set one with %s", where, flag)
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("load kubeconfig: %s %s: is empty", flag, path)
	case err != nil:
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	return cfg, nil
}

// throttle limits the requests of a client according to environment variables that Landscaper's charts set.
type throttle struct {
	burst, qps               string
	defaultBurst, defaultQPS int
}

var (
	resourceThrottle = throttle{burst: "LS_RESOURCE_CLIENT_BURST", qps: "LS_RESOURCE_CLIENT_QPS", defaultBurst: 60, defaultQPS: 40}
	hostThrottle     = throttle{burst: "LS_HOST_CLIENT_BURST", qps: "LS_HOST_CLIENT_QPS", defaultBurst: 30, defaultQPS: 20}
)

// applyTo limits the client if one of the environment variables in t is set. A value that is not a positive number
// counts as not set. If only one variable is set, Landscaper's default applies to the other variable.
func (t throttle) applyTo(cfg *rest.Config, env func(string) (string, bool)) {
	positive := func(name string) int {
		text, _ := env(name)
		if number, err := strconv.Atoi(text); err == nil && number > 0 {
			return number
		}
		return 0
	}
	burst, qps := positive(t.burst), positive(t.qps)
	if burst == 0 && qps == 0 {
		return
	}
	cfg.Burst, cfg.QPS = cmp.Or(burst, t.defaultBurst), float32(cmp.Or(qps, t.defaultQPS))
}
