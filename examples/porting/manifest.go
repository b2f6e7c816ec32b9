// SPDX-License-Identifier: Apache-2.0

package porting

import (
	"context"
	"encoding/json"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// Manifest creates a ConfigMap whose data is the configuration of the Target. Manifest itself reads this configuration
// from the Target. It implements ForceReconcile, and its hooks receive a logger. Its Delete method returns an error
// until nothing is left to delete.
type Manifest struct {
	Target client.Client
	// Next determines when the next run of an item is due.
	Next continuousreconcile.NextFunc
	// Forced counts the calls of ForceReconcile.
	Forced int
}

// ExtensionHooks returns the hooks of the deployer.
func (m *Manifest) ExtensionHooks() extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}
	hooks.RegisterHook(logDeletion, extension.BeforeDeleteHook)
	if m.Next != nil {
		hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(m.Next))
	}
	return hooks
}

func logDeletion(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	log.Info("delete", "phase", di.Status.Phase)
	return nil, nil
}

// Reconcile applies the manifest.
func (m *Manifest) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing
	config := map[string]string{}
	if err := json.Unmarshal(target.Spec.Configuration.RawMessage, &config); err != nil {
		return lserrors.NewWrappedError(err, "ReadTarget", "InvalidTarget", "the target has no configuration", lsv1alpha1.ErrorConfigurationProblem)
	}
	manifest := manifestOf(di)
	manifest.Data = config
	if err := client.IgnoreAlreadyExists(m.Target.Create(ctx, manifest)); err != nil {
		return lserrors.NewWrappedError(err, "ApplyObjects", "ApplyNewObject", err.Error())
	}
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	return nil
}

// ForceReconcile applies the manifest again.
func (m *Manifest) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error {
	m.Forced++
	if err := client.IgnoreNotFound(m.Target.Delete(ctx, manifestOf(di))); err != nil {
		return err
	}
	return m.Reconcile(ctx, lsCtx, di, target)
}

// Delete deletes the objects that still exist. It succeeds when no objects exist.
func (m *Manifest) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Deleting
	err := m.Target.Delete(ctx, manifestOf(di))
	if err == nil {
		return errors.New("not all objects are deleted")
	}
	return client.IgnoreNotFound(err)
}

// Abort does nothing.
func (*Manifest) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error {
	return nil
}

func manifestOf(di *lsv1alpha1.DeployItem) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "manifest-" + di.Name, Namespace: di.Namespace}}
}
