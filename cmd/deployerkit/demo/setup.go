// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/steps"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
	"github.com/deployerkit/deployerkit/targets"
)

// namespace is the namespace of the deploy items and the Installations in the directory examples.
const namespace = "demo"

// These durations are shorter than the defaults of a deployer, so that the demo does not take long.
const (
	pollInterval = 500 * time.Millisecond
	gracePeriod  = 2 * time.Second
)

// demo is a running control plane with deployers.
type demo struct {
	cp         *controlplane.ControlPlane
	landscaper *landscaper.Landscaper // nil unless the real Landscaper runs
	env        *steps.Env
	table      *table
	histories  []*history.Store // of the deployers

	// annotations simulates a Landscaper that follows the annotation revision of the contract. jobs simulates a
	// Landscaper that follows the job-ID revision.
	annotations, jobs *landscapertest.Landscaper

	stopDeployers func() error
}

// start starts the control plane, the deployers and, if requested, the real Landscaper.
func start(ctx context.Context, out io.Writer, withLandscaper bool) (*demo, error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Progress: out, ControllerManager: withLandscaper})
	if err != nil {
		return nil, err
	}
	d := &demo{cp: cp, table: newTable(), stopDeployers: func() error { return nil }}
	if withLandscaper {
		d.landscaper, err = landscaper.Start(ctx, cp, landscaper.Options{Progress: out})
	}
	if err == nil {
		err = d.startDeployers(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// startDeployers creates the clients, and starts the deployers and the controllers that simulate parts of the cluster.
func (d *demo) startDeployers(ctx context.Context) error {
	config := rest.CopyConfig(d.cp.Config)
	config.WarningHandlerWithContext = deployermain.NewWarningLog(ctrl.Log)
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if d.env, err = steps.NewEnv(c, namespace, d.cp.Kubeconfig()); err != nil {
		return err
	}
	d.annotations = landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
	d.jobs = landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID})
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: ctrl.Log, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := d.addControllers(mgr); err != nil {
		return err
	}
	return d.startManager(ctx, mgr)
}

// addControllers adds the deployers, and the controllers that the control plane lacks.
func (d *demo) addControllers(mgr manager.Manager) error {
	hook := extension.ReconcileExtensionHookSetup{Hook: extension.WithName("demo", d.table.recordHook), HookTypes: extension.AllHookTypes()}
	for _, args := range []deployerlib.DeployerArgs{
		mock.Args(nil, hook),
		manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}}, hook),
	} {
		args.PollInterval, args.GracePeriod = pollInterval, gracePeriod
		args.Registerer, args.Observe = prometheus.NewRegistry(), d.table.recordCall
		args.History = history.NewStore(0)
		d.histories = append(d.histories, args.History)
		if err := deployerlib.Add(ctrl.Log, mgr, nil, args); err != nil {
			return err
		}
	}
	if d.landscaper != nil { // kube-controller-manager runs, too, so that only kubelets are missing
		return controlplane.AddKubelet(mgr, nil)
	}
	return addClusterControllers(mgr)
}

// startManager starts the manager. From then on, the table is updated whenever an object changes.
func (d *demo) startManager(ctx context.Context, mgr manager.Manager) error {
	for _, obj := range []client.Object{&lsv1alpha1.DeployItem{}, &lsv1alpha1.Installation{}, &lsv1alpha1.Execution{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(d.table.eventHandler())
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", obj, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	d.stopDeployers = func() error {
		cancel()
		return <-ended
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the manager did not start")
	}
	return nil
}

// stop stops the deployers, Landscaper and the control plane.
func (d *demo) stop() error {
	err := d.stopDeployers()
	if d.landscaper != nil {
		err = errors.Join(err, d.landscaper.Stop())
	}
	return errors.Join(err, d.cp.Stop())
}
