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

// addClusterControllers adds controllers that replace kube-controller-manager, which is not one of the prebuilt
// binaries of the control plane. These controllers make Deployments ready and remove deleted namespaces. That is enough
// for the demo without the real Landscaper.
func addClusterControllers(mgr manager.Manager) error {
	return errors.Join(addController(mgr, "deployment", &appsv1.Deployment{}, makeReady), addController(mgr, "namespace", &corev1.Namespace{}, finalize))
}

// addController adds a controller that calls a function for each object of a type.
func addController[T interface {
	client.Object
	comparable
}](mgr manager.Manager, name string, obj T, f func(context.Context, client.Client, T) error) error {
	c := mgr.GetClient()
	return builder.ControllerManagedBy(mgr).For(obj).Named(name).Complete(reconcile.AsReconciler(c, reconcile.TypedFunc[T](
		func(ctx context.Context, obj T) (reconcile.Result, error) {
			return reconcile.Result{}, client.IgnoreNotFound(f(ctx, c, obj))
		})))
}

// makeReady sets the status of a Deployment as if all its replicas were ready.
func makeReady(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
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

// finalize deletes the objects in a deleted namespace and then removes the namespace.
func finalize(ctx context.Context, c client.Client, ns *corev1.Namespace) error {
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
