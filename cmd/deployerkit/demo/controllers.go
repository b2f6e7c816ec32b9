// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// addControllers adds controllers that replace kube-controller-manager, which is not one of the prebuilt binaries of
// the control plane. These controllers make Deployments ready and remove deleted namespaces. That is enough for the
// scenario without the real Landscaper.
func addControllers(mgr manager.Manager) error {
	c := mgr.GetClient()
	return errors.Join(
		builder.ControllerManagedBy(mgr).For(&appsv1.Deployment{}).Named("deployment").Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				d := &appsv1.Deployment{}
				if err := c.Get(ctx, req.NamespacedName, d); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, client.IgnoreNotFound(rollOut(ctx, c, d))
			})),
		builder.ControllerManagedBy(mgr).For(&corev1.Namespace{}).Named("namespace").Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				ns := &corev1.Namespace{}
				if err := c.Get(ctx, req.NamespacedName, ns); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, client.IgnoreNotFound(finish(ctx, c, ns))
			})),
	)
}

// rollOut sets the status of a Deployment as if all its replicas were ready.
func rollOut(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	before, n := d.DeepCopy(), ptr.Deref(d.Spec.Replicas, 1)
	d.Status.ObservedGeneration = d.Generation
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = n, n, n, n
	if len(d.Status.Conditions) == 0 {
		now := metav1.Now()
		for _, t := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
			d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
				Type: t, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: now, LastTransitionTime: now,
			})
		}
	}
	return c.Status().Patch(ctx, d, client.MergeFrom(before))
}

// finish deletes the objects in a deleted namespace and then removes the namespace.
func finish(ctx context.Context, c client.Client, ns *corev1.Namespace) error {
	if ns.DeletionTimestamp == nil {
		return nil
	}
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Event{}} {
		if err := c.DeleteAllOf(ctx, obj, client.InNamespace(ns.Name)); err != nil {
			return fmt.Errorf("delete the objects in namespace %s: %w", ns.Name, err)
		}
	}
	ns.Spec.Finalizers = nil
	return c.SubResource("finalize").Update(ctx, ns)
}
