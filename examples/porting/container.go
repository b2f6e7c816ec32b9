// SPDX-License-Identifier: Apache-2.0

package porting

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	itemLabel      = "porting.example.org/item"
	operationLabel = "porting.example.org/operation"
)

var errPodRuns = errors.New("the pod has not finished")

// Container runs a pod to deploy an item and another pod to uninstall it. In this skeleton, a ConfigMap represents a
// pod, and its key "phase" is the phase of the pod. The phase of the item also records whether the pod was started: the
// pod was started unless the phase is Init.
type Container struct{ Host client.Client }

// Reconcile starts the pod. If the pod was started earlier, Reconcile derives the phase of the item from the phase of
// the pod.
func (c *Container) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	if shouldRunNewPod(di.Status.Phase) {
		if err := c.start(ctx, di, "reconcile"); err != nil {
			return err
		}
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing
		return nil
	}
	phase, err := c.getPodPhase(ctx, di, "reconcile")
	if err != nil {
		return err
	}
	switch phase {
	case corev1.PodSucceeded:
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	case corev1.PodFailed:
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Failed
	default:
	}
	return nil
}

// Delete starts the pod that uninstalls the item. If the pod was started earlier, Delete checks its phase. Delete
// returns an error until the pod has succeeded.
func (c *Container) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	if shouldRunNewPod(di.Status.Phase) {
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Deleting
		return errors.Join(c.start(ctx, di, "delete"), errPodRuns)
	}
	phase, err := c.getPodPhase(ctx, di, "delete")
	if err != nil {
		return err
	}
	if phase != corev1.PodSucceeded {
		return errPodRuns
	}
	controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	return nil
}

// Abort does nothing.
func (*Container) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// shouldRunNewPod reports whether the pod of the current run has not been started yet.
func shouldRunNewPod(phase lsv1alpha1.DeployItemPhase) bool {
	return phase == lsv1alpha1.DeployItemPhases.Init || phase == lsv1alpha1.DeployItemPhases.InitDelete
}

// start creates a pod without checking whether a pod already exists.
func (c *Container) start(ctx context.Context, di *lsv1alpha1.DeployItem, operation string) error {
	return c.Host.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName: di.Name + "-", Namespace: di.Namespace, Labels: podLabels(di, operation),
	}})
}

// getPodPhase returns the phase of the pod.
func (c *Container) getPodPhase(ctx context.Context, di *lsv1alpha1.DeployItem, operation string) (corev1.PodPhase, error) {
	pods := &corev1.ConfigMapList{}
	if err := c.Host.List(ctx, pods, client.InNamespace(di.Namespace), podLabels(di, operation)); err != nil {
		return "", err
	}
	if n := len(pods.Items); n != 1 {
		return "", fmt.Errorf("found %d pods, want one", n)
	}
	return corev1.PodPhase(pods.Items[0].Data["phase"]), nil
}

func podLabels(di *lsv1alpha1.DeployItem, operation string) client.MatchingLabels {
	return client.MatchingLabels{itemLabel: di.Name, operationLabel: operation}
}
