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
	"github.com/deployerkit/deployerkit/extension"
)

// library is a deployer that has nothing to do, run by the library, with a
// no-op hook on every hook point.
type library struct{ deployerlib.Base }

// add registers the deployer.
func (l *library) add(mgr ctrl.Manager) error {
	return deployerlib.Add(logr.Discard(), mgr, nil, deployerlib.DeployerArgs{
		Name: "bench.deployerkit.dev", Type: itemType, Deployer: l, Registerer: prometheus.NewRegistry(),
		Options: controller.Options{MaxConcurrentReconciles: workers},
	})
}

func (*library) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (*library) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (*library) ExtensionHooks() extension.ReconcileExtensionHooks {
	noop := func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return nil, nil
	}
	return extension.ReconcileExtensionHooks{}.RegisterHook(noop, extension.HookTypes()...)
}
