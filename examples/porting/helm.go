// SPDX-License-Identifier: Apache-2.0

package porting

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// Helm installs a release. In this skeleton, a ConfigMap represents the release. When the release is deleted, the
// method Delete itself removes the finalizer of the item, and leaves the phase of the item at Deleting.
type Helm struct {
	// Target is a client for the cluster in which the release is installed.
	Target client.Client
	// Landscaper is a client for the cluster that contains the items. If it is set, Delete removes the finalizer in
	// this cluster. Otherwise, Delete removes the finalizer only from its copy of the item.
	Landscaper client.Client
	// Next determines when the next run of an item is due.
	Next continuousreconcile.NextFunc
}

// ExtensionHooks returns the hooks of the deployer.
func (h *Helm) ExtensionHooks() extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}
	if h.Next != nil {
		hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(h.Next))
	}
	return hooks
}

// Reconcile installs the release.
func (h *Helm) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing
	if err := h.Target.Create(ctx, release(di)); err != nil {
		return lserrors.NewWrappedError(err, "InstallRelease", "CreateFailed", err.Error())
	}
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	return nil
}

// Delete uninstalls the release.
func (h *Helm) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Deleting
	if err := client.IgnoreNotFound(h.Target.Delete(ctx, release(di))); err != nil {
		return lserrors.NewWrappedError(err, "DeleteRelease", "DeleteFailed", err.Error())
	}
	controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	if h.Landscaper != nil {
		return h.Landscaper.Update(ctx, di)
	}
	return nil
}

// Abort does nothing.
func (*Helm) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func release(di *lsv1alpha1.DeployItem) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "release-" + di.Name, Namespace: di.Namespace}}
}
