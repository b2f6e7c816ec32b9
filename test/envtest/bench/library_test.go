// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/extension"
)

// library is a contender that runs the mock deployer with the library. For every hook type, it registers a hook that
// does nothing.
type library struct{}

// add adds the mock deployer to a manager.
func (library) add(mgr ctrl.Manager) error {
	noop := func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return nil, nil
	}
	return deployerlib.Add(logr.Discard(), mgr, nil, deployerlib.DeployerArgs{
		Name: "bench.deployerkit.dev", Type: itemType, Registerer: prometheus.NewRegistry(),
		Deployer: mock.New(extension.ReconcileExtensionHookSetup{Hook: noop, HookTypes: extension.AllHookTypes()}),
		Options:  controller.Options{MaxConcurrentReconciles: workers},
	})
}
