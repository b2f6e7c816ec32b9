// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
)

// newDriftCounter counts drift; a run heals all that an item has.
func newDriftCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_drift_total", Help: "Objects that were changed by others, by what happened to them.",
	}, []string{"what"})
}

// drift is a change by somebody else, and how to heal it.
type drift struct {
	watch.Event
	watch.Heal

	notBefore time.Time // when to heal it; a fight is healed later
}

// String is for events.
func (d drift) String() string {
	if !d.Fight {
		return d.Event.String()
	}
	return fmt.Sprintf("%s (a fight with %s about %s: put right again after %s)", d.Event, d.Manager, d.Field, d.Delay)
}

// drifted notes a drift and wakes the item, one that waits no more often than other events do. It is called by watches and
// never blocks.
func (s *clusters) drifted(e watch.Event) {
	it := s.keeper.items.find(e.Item)
	if it == nil {
		return
	}
	heal := s.guard.Heal(e)
	it.drifted(drift{Event: e, Heal: heal, notBefore: s.keeper.rt.Clock.Now().Add(heal.Delay)})
	s.seen.WithLabelValues(string(e.What)).Inc()
	if it.waits() {
		it.throttle.event()
		return
	}
	s.keeper.rt.Trigger(it.key)
}

// reportDrifts tells of what this run puts right.
func (r *Run) reportDrifts(drifts []drift) {
	for _, one := range drifts {
		kind := corev1.EventTypeNormal
		if one.Fight {
			kind = corev1.EventTypeWarning
		}
		about := &corev1.ObjectReference{Namespace: one.Object.Namespace, Name: one.Object.Name, UID: one.UID}
		if gvk, err := r.Cluster.RESTMapper().KindFor(one.Object.Resource); err == nil {
			about.SetGroupVersionKind(gvk)
		}
		r.Event(about, kind, "Drift", one.String())
	}
}

// related names an object for events.
func related(ref apply.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
