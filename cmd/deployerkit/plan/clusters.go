// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// timeout is the maximum time that the command waits for a response of the target.
const timeout = 10 * time.Second

// landscaper is the access to the cluster with the deploy items.
type landscaper struct {
	client.Client

	config *rest.Config
}

// openLandscaper creates a client for the cluster of a kubeconfig. It sends no request.
func openLandscaper(kubeconfig string) (*landscaper, error) {
	load := config.GetConfig
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	cfg, err := load()
	if err != nil {
		return nil, fmt.Errorf("landscaper cluster: load kubeconfig: %w", err)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("landscaper cluster: %w", err)
	}
	return &landscaper{Client: c, config: cfg}, nil
}

// newClient returns a client that reads directly from the API server and is not throttled. It suppresses warnings of
// the API server, because the command changes nothing.
func newClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = -1, 0
	cfg.WarningHandler = rest.NoWarnings{}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// target is the access to the cluster in which the deploy item deploys its objects.
type target struct {
	client.Client

	config *rest.Config
	name   string
	close  func()
}

// openTarget creates a client for the Target of the item, with the same restrictions as the deployer. If the user has
// specified a kubeconfig, target creates a client for the cluster of that kubeconfig instead, without these
// restrictions.
func (f *flags) openTarget(ctx context.Context, ls *landscaper, d *deployer, di *lsv1alpha1.DeployItem) (*target, error) {
	if f.targetKubeconfig == "" {
		return d.openTarget(ctx, ls, di)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", f.targetKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--target-kubeconfig: %w", err)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("--target-kubeconfig: %w", err)
	}
	return &target{Client: c, config: cfg, name: f.targetKubeconfig, close: func() {}}, nil
}

func (d *deployer) openTarget(ctx context.Context, ls *landscaper, di *lsv1alpha1.DeployItem) (*target, error) {
	ref := di.Spec.Target
	if ref == nil {
		return nil, errors.New("spec.target: required, unless --target-kubeconfig is set")
	}
	if ref.Namespace != "" && ref.Namespace != di.Namespace {
		return nil, fmt.Errorf("spec.target.namespace: is %q, but a deploy item can only use Targets of its own namespace", ref.Namespace)
	}
	named := &lsv1alpha1.Target{}
	key := types.NamespacedName{Namespace: di.Namespace, Name: ref.Name}
	if err := ls.Get(ctx, key, named); err != nil {
		return nil, fmt.Errorf("get Target %s: %w", key, err)
	}
	resolver := targets.NewResolver(ls, clock.RealClock{}, 0)
	resolved, err := resolver.Resolve(ctx, named)
	if err != nil {
		return nil, err
	}
	pool := targets.NewPool(targets.PoolOptions{
		Policy: d.policy, Resolver: resolver, Landscaper: ls.config, LandscaperClient: ls, GetTimeout: timeout, ConnectTimeout: timeout,
		Limits: d.limits, WrapTransport: d.wrap,
	})
	c, err := pool.Get(ctx, resolved)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open Target %s: %w", key, err)
	}
	return &target{Client: c, config: c.Config(), name: "Target " + key.String(), close: pool.Close}, nil
}
