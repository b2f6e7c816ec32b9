// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// kubeletPoll is the interval at which a Pod that is not ready yet is checked.
const kubeletPoll = 100 * time.Millisecond

// AddKubelet adds a controller to mgr that simulates the kubelets of a cluster. The controller marks a Pod as running
// and ready when the function `ready` returns true for the Pod. If `ready` is nil, all Pods become ready immediately.
// The controller removes deleted Pods. It does not change a Pod that a test has marked as succeeded or failed.
func AddKubelet(mgr manager.Manager, ready func(*corev1.Pod) bool) error {
	c := mgr.GetClient()
	return builder.ControllerManagedBy(mgr).For(&corev1.Pod{}).Named("kubelet").Complete(
		reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			pod := &corev1.Pod{}
			if err := c.Get(ctx, req.NamespacedName, pod); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			switch {
			case pod.DeletionTimestamp != nil:
				return reconcile.Result{}, client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
			case pod.Status.Phase != "" && pod.Status.Phase != corev1.PodPending:
				return reconcile.Result{}, nil // the Pod is already running, or a test has ended it
			case ready != nil && !ready(pod):
				return reconcile.Result{RequeueAfter: kubeletPoll}, nil
			}
			before := pod.DeepCopy()
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			return reconcile.Result{}, client.IgnoreNotFound(c.Status().Patch(ctx, pod, client.MergeFrom(before)))
		}))
}
