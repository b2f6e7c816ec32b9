// SPDX-License-Identifier: Apache-2.0

package porting

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lsv1helper "github.com/gardener/landscaper/apis/core/v1alpha1/helper"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// Mock sets the phase of an item to the phase in the configuration of the item. If the configuration contains an
// initial phase, Mock sets the initial phase when a run begins.
type Mock struct {
	// Status is a client for status updates. If it is set, Mock writes the status after each step, as deployers for
	// Landscaper's library do. In a ported deployer, Status must be nil.
	Status client.StatusClient
}

// Hooks returns the hooks of the deployer.
func (m *Mock) Hooks() deployerlib.PortedHooks {
	hooks := deployerlib.PortedHooks{}
	return hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(m.NextReconcile))
}

// NextReconcile returns the time when the next run of an item is due.
func (*Mock) NextReconcile(ctx context.Context, last time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
	config, err := mockConfig(di)
	if err != nil {
		return nil, err
	}
	schedule, err := continuousreconcile.ParseSchedule(config.ContinuousReconcile)
	if err != nil || schedule == nil {
		return nil, err
	}
	return new(schedule.Next(last)), nil
}

// Reconcile sets the phase.
func (m *Mock) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	config, err := mockConfig(di)
	if err != nil {
		return err
	}
	di.Status.Conditions = lsv1helper.CreateOrUpdateConditions(di.Status.Conditions, lsv1alpha1.DeployItemValidationCondition,
		lsv1alpha1.ConditionTrue, "Valid", "the configuration is valid")
	if err := m.write(ctx, di); err != nil {
		return err
	}
	begun := di.Status.Phase == "" || di.Status.Phase == lsv1alpha1.DeployItemPhases.Init
	switch {
	case config.InitialPhase == nil:
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	case begun:
		di.Status.Phase = *config.InitialPhase
	}
	if config.Phase != nil {
		di.Status.Phase = *config.Phase
	}
	if config.ProviderStatus != nil {
		di.Status.ProviderStatus = config.ProviderStatus
	}
	return m.write(ctx, di)
}

// Delete does nothing, because there is nothing to remove.
func (*Mock) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Abort does nothing.
func (*Mock) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (m *Mock) write(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if m.Status == nil {
		return nil
	}
	return m.Status.Status().Update(ctx, di)
}

func mockConfig(di *lsv1alpha1.DeployItem) (*mockv1alpha1.ProviderConfiguration, error) {
	config := &mockv1alpha1.ProviderConfiguration{}
	return config, json.Unmarshal(di.Spec.Configuration.Raw, config)
}
