// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// phases are the phases that the method Reconcile of a deployer may set.
var phases = []lsv1alpha1.DeployItemPhase{
	lsv1alpha1.DeployItemPhases.Succeeded, lsv1alpha1.DeployItemPhases.Progressing, lsv1alpha1.DeployItemPhases.Failed,
}

// decode decodes and validates the configuration of an item. An error is one of deployerlib.NewConfigError with the
// path of the field.
func decode(di *lsv1alpha1.DeployItem) (*mockv1alpha1.ProviderConfiguration, error) {
	kind := mockv1alpha1.SchemeGroupVersion.WithKind("ProviderConfiguration")
	config, err := deployerlib.DecodeConfigAs[mockv1alpha1.ProviderConfiguration](di, kind)
	if err != nil {
		return nil, err
	}
	if err := checkPhase("spec.config.phase", config.Phase); err != nil {
		return nil, err
	}
	if err := checkPhase("spec.config.initialPhase", config.InitialPhase); err != nil {
		return nil, err
	}
	if config.ProviderStatus != nil {
		if err := contract.CheckProviderStatus(config.ProviderStatus); err != nil {
			return nil, deployerlib.NewConfigError("spec.config.providerStatus", "%s", err)
		}
	}
	if _, err := continuousreconcile.ParseSchedule(config.ContinuousReconcile); err != nil {
		return nil, deployerlib.NewConfigError("spec.config.continuousReconcile", "%s", err)
	}
	return config, nil
}

// checkPhase returns an error unless the given phase is nil, empty, or one that Reconcile may set.
func checkPhase(path string, phase *lsv1alpha1.DeployItemPhase) error {
	if phase == nil || *phase == "" || slices.Contains(phases, *phase) {
		return nil
	}
	return deployerlib.NewConfigError(path, "is %q, want one of %q", *phase, phases)
}

// getPhaseAfter returns the phase that a call sets for an item whose phase in the cluster is stored. If config.Phase is
// set, the result is config.Phase. Otherwise, if config.InitialPhase is set, the result is config.InitialPhase in the
// first call of a Landscaper job, and in later calls the phase that the item already has. If neither field is set, the
// result is Succeeded.
func getPhaseAfter(config *mockv1alpha1.ProviderConfiguration, stored lsv1alpha1.DeployItemPhase) lsv1alpha1.DeployItemPhase {
	switch {
	case isSet(config.Phase):
		return *config.Phase
	case !isSet(config.InitialPhase):
		return lsv1alpha1.DeployItemPhases.Succeeded
	case stored == "" || stored == lsv1alpha1.DeployItemPhases.Init:
		return *config.InitialPhase
	}
	return stored
}

func isSet(phase *lsv1alpha1.DeployItemPhase) bool { return phase != nil && *phase != "" }

// getSchedule returns the schedule of an item. It returns nil for an invalid configuration, which Reconcile reports.
func getSchedule(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
	config, err := decode(di)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return config.ContinuousReconcile, nil
}
