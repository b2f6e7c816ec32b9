// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// newDriftCounter counts drift; a run heals all that an item has.
func newDriftCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_manifest_drift_total", Help: "Objects that were changed by others, by what happened to them.",
	}, []string{"what"})
}

// drift is a change by somebody else, and how to heal it.
type drift struct {
	watch.Event
	watch.Heal
}

// String is for events.
func (d drift) String() string {
	if !d.Fight {
		return d.Event.String()
	}
	return fmt.Sprintf("%s (a fight with %s about %s: put right again after %s)", d.Event, d.Manager, d.Field, d.Delay)
}

// healDrift is a hook that forces a run for an item with drift, unless its owner
// switched continuous reconcile off. A fight is slowed down.
func (d *deployer) healDrift(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	it := d.items.find(di.UID)
	if it == nil || di.DeletionTimestamp != nil || di.Annotations[continuousreconcile.ActiveAnnotation] == "false" {
		return nil, nil
	}
	due, notBefore := it.toHeal()
	if !due {
		return nil, nil
	}
	if rest := notBefore.Sub(d.rt.Clock.Now()); rest > 0 {
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: rest}}, nil
	}
	return &extension.HookResult{}, nil
}

// thorough notes that the schedule asks for a run: it is for indirect changes,
// which no watch shows, so nothing is believed to be unchanged.
func (d *deployer) thorough(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHook {
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		res, err := scheduled(ctx, log, di, target, t)
		if res != nil && !res.AbortReconcile && di != nil {
			d.items.get(di).setThorough(true)
		}
		return res, err
	}
}

// reportDrifts tells of what this run puts right.
func (r *run) reportDrifts(drifts []drift) {
	for _, one := range drifts {
		kind := corev1.EventTypeNormal
		if one.Fight {
			kind = corev1.EventTypeWarning
		}
		about := &corev1.ObjectReference{Namespace: one.Object.Namespace, Name: one.Object.Name, UID: one.UID}
		if gvk, err := r.cluster.RESTMapper().KindFor(one.Object.Resource); err == nil {
			about.SetGroupVersionKind(gvk)
		}
		r.event(r.di, about, kind, "Drift", one.String())
	}
}

// event writes an event about an item. related is the object that it is about,
// nil for none: without it, the recorder would count what happens to several
// objects in one run as one event that came again, and name only the first.
func (d *deployer) event(di *lsv1alpha1.DeployItem, related runtime.Object, kind, reason, message string) {
	d.rt.Recorder.Eventf(di, related, kind, reason, "ReconcileDeployItem", "%s", message)
}

// related names an object for events.
func related(ref apply.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
