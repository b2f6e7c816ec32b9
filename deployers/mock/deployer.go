// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// ValidationCondition is the type of the condition that reports whether the configuration of an item is valid.
const ValidationCondition lsv1alpha1.ConditionType = "DeployItemValidation"

// The reasons of ValidationCondition.
const (
	reasonValid   = "SuccessfulValidation"
	reasonInvalid = "InvalidConfiguration"
)

// New returns the mock deployer. Its own hook reconciles items on the schedule of their configuration. The given hooks
// are called in addition.
func New(hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	all := extension.ReconcileExtensionHooks{}.
		RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(continuousreconcile.FromSpec(getSchedule)))
	for _, setup := range hooks {
		all = all.RegisterHookSetup(setup)
	}
	return &deployer{hooks: all}
}

type deployer struct {
	deployerlib.Base

	hooks   extension.ReconcileExtensionHooks
	clock   clock.PassiveClock
	secrets client.Client // for the cluster of the deploy items
}

var _ deployerlib.RuntimeUser = (*deployer)(nil)

// UseRuntime creates a client for export Secrets. The client reads from the API server, because the manager's own
// client would cache all Secrets of the cluster.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register core types: %w", err)
	}
	var err error
	d.secrets, err = client.New(rt.Landscaper.GetConfig(), client.Options{
		HTTPClient: rt.Landscaper.GetHTTPClient(), Scheme: scheme, Mapper: rt.Landscaper.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("create client for export Secrets: %w", err)
	}
	d.clock = rt.Clock
	return nil
}

// IgnoresContext implements deployerlib.ContextIgnorer.
func (d *deployer) IgnoresContext() {}

// Reconcile sets the status and the export as the configuration specifies. It writes only the export Secret. All other
// changes are made in memory, so that a single write of the status stores them.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	config, err := d.validate(di)
	if err != nil {
		return err
	}
	if config.Export != nil {
		if err := deployerlib.WriteExport(ctx, d.secrets, di, *config.Export); err != nil {
			return err
		}
	}
	if config.ProviderStatus != nil {
		di.Status.ProviderStatus = config.ProviderStatus
	}
	di.Status.Phase = getPhaseAfter(config, deployerlib.StoredPhase(ctx))
	return nil
}

// validate decodes the configuration and sets ValidationCondition accordingly.
func (d *deployer) validate(di *lsv1alpha1.DeployItem) (*mockv1alpha1.ProviderConfiguration, error) {
	config, err := decode(di)
	status, reason, message := lsv1alpha1.ConditionTrue, reasonValid, "the provider configuration is valid"
	if err != nil {
		status, reason, message = lsv1alpha1.ConditionFalse, reasonInvalid, err.Error()
	}
	di.Status.Conditions = contract.SetCondition(di.Status.Conditions, ValidationCondition, status, reason, message,
		d.clock.Now(), contract.ErrorCodes(err)...)
	return config, err
}

// Delete removes the export Secret. It succeeds if the Secret does not exist.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	return deployerlib.DeleteExport(ctx, d.secrets, di)
}

// ExtensionHooks returns the hook for the schedule and the hooks given to New.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }
