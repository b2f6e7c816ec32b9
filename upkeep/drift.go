// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/contract"
)

// newDriftCounter counts drift. A run corrects all drift of an item.
func newDriftCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_drift_total", Help: "Objects that were changed by others, by what happened to them.",
	}, []string{"what"})
}

// drift is a change by another writer, and how to correct it.
type drift struct {
	watch.Event
	watch.Heal

	notBefore time.Time // when to correct it; corrections in a fight are delayed
}

// String returns the drift for events.
func (d drift) String() string {
	if !d.Fight {
		return d.Event.String()
	}
	return fmt.Sprintf("%s (a fight with %s about %s: put right again after %s)", d.Event, d.Manager, d.Field, d.Delay)
}

// drifted queues a drift and wakes the item. A waiting item is woken no more often than by other events. A drift that
// is corrected later has its own alarm. drifted is called by watches and never blocks.
func (s *clusters) drifted(e watch.Event) {
	it := s.keeper.items.find(e.Item)
	if it == nil {
		return
	}
	d, first := it.drifted(e, func() watch.Heal { return s.guard.Heal(e) })
	s.seen.WithLabelValues(string(e.What)).Inc()
	if d.Delay == 0 && it.waits() {
		it.throttle.event()
		return
	}
	it.reschedule()
	if d.Fight && first {
		s.announce(it, d)
		it.wake(s.keeper.rt.Clock.Now()) // a run reports it in a condition
	}
}

// announce reports in an event that a drift is corrected later.
func (s *clusters) announce(it *item, d drift) {
	item := &corev1.ObjectReference{Namespace: it.key.Namespace, Name: it.key.Name, UID: d.Item}
	item.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	about := &corev1.ObjectReference{Namespace: d.Object.Namespace, Name: d.Object.Name, UID: d.UID}
	s.keeper.rt.Recorder.Eventf(item, about, corev1.EventTypeWarning, "Drift", "ReconcileDeployItem", "%s", contract.EscapeBidi(d.String()))
}

// reportDrifts reports what this run corrects.
func (r *Run) reportDrifts(drifts []drift) {
	for _, one := range drifts {
		if one.Fight {
			continue // see announce
		}
		about := &corev1.ObjectReference{Namespace: one.Object.Namespace, Name: one.Object.Name, UID: one.UID}
		if gvk, err := r.Cluster.RESTMapper().KindFor(one.Object.Resource); err == nil {
			about.SetGroupVersionKind(gvk)
		}
		r.Event(about, corev1.EventTypeNormal, "Drift", one.String())
	}
}

// related returns the reference of an object for events.
func related(ref apply.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
