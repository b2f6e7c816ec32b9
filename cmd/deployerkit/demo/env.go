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
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
	"github.com/deployerkit/deployerkit/targets"
)

// namespace is the namespace of the items in examples/deploy-items.
const namespace = "demo"

// These durations are shorter than the defaults of a deployer, so that the demo does not take long.
const (
	pollInterval = 500 * time.Millisecond
	gracePeriod  = 2 * time.Second
)

// env is the environment of a scenario.
type env struct {
	cp     *controlplane.ControlPlane
	client client.Client // reads from the API server
	state  *state

	// classic simulates a Landscaper that follows the annotation revision of the contract. modern simulates a
	// Landscaper that follows the job-ID revision.
	classic, modern *landscapertest.Landscaper

	// landscaper is the real Landscaper, or nil. jobs maps the name of each Installation to the ID of its last known
	// job.
	landscaper *landscaper.Landscaper
	jobs       map[string]string

	stopManager func() error
}

// setUp starts the control plane, the deployers and, if requested, the real Landscaper.
func setUp(ctx context.Context, out io.Writer, withLandscaper bool) (*env, error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Progress: out, ControllerManager: withLandscaper})
	if err != nil {
		return nil, err
	}
	st := &env{cp: cp, state: newState(), jobs: map[string]string{}, stopManager: func() error { return nil }}
	if withLandscaper {
		st.landscaper, err = landscaper.Start(ctx, cp, landscaper.Options{Progress: out})
	}
	if err == nil {
		err = st.populate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

// populate creates the clients and runs the deployers.
func (st *env) populate(ctx context.Context) error {
	config := rest.CopyConfig(st.cp.Config)
	config.WarningHandlerWithContext = deployermain.NewWarningLog(ctrl.Log)
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return err
	}
	if st.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	st.classic = landscapertest.NewLandscaper(st.client, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
	st.modern = landscapertest.NewLandscaper(st.client, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID})
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: ctrl.Log, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	hook := extension.ReconcileExtensionHookSetup{Hook: extension.Named("demo", st.state.hook), HookTypes: extension.HookTypes()}
	for _, args := range []deployerlib.DeployerArgs{
		mock.Args(nil, hook),
		manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}}, hook),
	} {
		args.PollInterval, args.GracePeriod = pollInterval, gracePeriod
		args.Registerer, args.Observe = prometheus.NewRegistry(), st.state.step
		if err := deployerlib.Add(ctrl.Log, mgr, nil, args); err != nil {
			return err
		}
	}
	controllers := addControllers
	if st.landscaper != nil { // if the real Landscaper runs, kube-controller-manager runs, too
		controllers = func(mgr manager.Manager) error { return controlplane.AddKubelet(mgr, nil) }
	}
	if err := controllers(mgr); err != nil {
		return err
	}
	return st.run(ctx, mgr)
}

// run starts the manager. From then on, the field `state` is updated whenever an object changes.
func (st *env) run(ctx context.Context, mgr manager.Manager) error {
	for _, obj := range []client.Object{&lsv1alpha1.DeployItem{}, &lsv1alpha1.Installation{}, &lsv1alpha1.Execution{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(st.state.handler())
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", obj, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	st.stopManager = func() error {
		cancel()
		return <-ended
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the manager did not start")
	}
	return nil
}

// close stops the deployers, Landscaper, and the control plane.
func (st *env) close() error {
	err := st.stopManager()
	if st.landscaper != nil {
		err = errors.Join(err, st.landscaper.Stop())
	}
	return errors.Join(err, st.cp.Stop())
}

// get reads an item. It returns nil if the item does not exist. If Landscaper has created the item, `name` is the name
// of the item in the blueprint. Otherwise it is the name of the object.
func (st *env) get(ctx context.Context, name string) (*lsv1alpha1.DeployItem, error) {
	if st.landscaper != nil {
		items := &lsv1alpha1.DeployItemList{}
		err := st.client.List(ctx, items, client.InNamespace(namespace), client.MatchingLabels{lsv1alpha1.ExecutionManagedNameLabel: name})
		if err != nil || len(items.Items) == 0 {
			return nil, err
		}
		return &items.Items[0], nil
	}
	di := &lsv1alpha1.DeployItem{}
	if err := st.client.Get(ctx, item(name), di); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return di, nil
}

// item returns the namespace and the name of an item of the demo.
func item(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
