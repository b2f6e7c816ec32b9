// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// newDriftCounter returns the metric that counts changes by other writers. Its label is the kind of the change. All
// kinds begin with zero, so that the function increase of Prometheus also counts the first change.
func newDriftCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_drift_total", Help: "Changes to objects by other writers, by kind of change.",
	}, []string{"what"})
	for _, reason := range []observe.DriftReason{
		observe.DriftReasonChanged, observe.DriftReasonWiped, observe.DriftReasonDeleted, observe.DriftReasonDeleting,
		observe.DriftReasonReplaced, observe.DriftReasonRelabelled,
	} {
		c.WithLabelValues(string(reason))
	}
	return c
}

// newDelayCounter returns the metric that counts delayed corrections.
func newDelayCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "deployerkit_delayed_corrections_total", Help: "Corrections that were delayed because of a fight with another writer.",
	})
}

// handleDrift adds a drift to the triggers of its item and triggers a run. If the item is waiting, the throttle limits
// how often runs are triggered. If the correction is delayed, a timer triggers the run. Watchers call drifted, so it
// must not block.
func (s *clusters) handleDrift(d observe.Drift) {
	it := s.manager.items.find(d.Item)
	if it == nil {
		return
	}
	pending, first := it.triggers.AddDrift(d, s.fights.AddCorrection)
	s.driftCounter.WithLabelValues(string(d.Reason)).Inc()
	if pending.Delay == 0 && it.isWaiting() {
		it.triggers.NotifyChange()
		return
	}
	it.triggers.RequestIfDue()
	if pending.Fight && first {
		s.delayCounter.Inc()
		s.recordDelayedCorrection(it, pending)
		it.triggers.Request(s.manager.rt.Clock.Now()) // an immediate run reports the fight in a condition
	}
}

// handleLostWatch triggers a run of an item that has lost a watch. The run opens the watch again, or reports why it
// cannot. Watchers call lost, so it must not block.
func (s *clusters) handleLostWatch(uid types.UID) {
	if it := s.manager.items.find(uid); it != nil {
		it.triggers.Request(s.manager.rt.Clock.Now())
	}
}

// recordDelayedCorrection writes an event which reports that the correction of a drift is delayed.
func (s *clusters) recordDelayedCorrection(it *item, d observe.PendingDrift) {
	item := &corev1.ObjectReference{Namespace: it.key.Namespace, Name: it.key.Name, UID: d.Item}
	item.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	about := &corev1.ObjectReference{Namespace: d.Object.Namespace, Name: d.Object.Name, UID: d.UID}
	s.manager.recordEvent(item, about, corev1.EventTypeWarning, "Drift", d.String())
}

// maxReported is the maximum number of drifts that a run reports in events.
const maxReported = 8

// recordDriftEvents writes events about the drifts (changes by other writers) that the run corrects, at most
// maxReported. It omits a drift whose correction was delayed, because clusters.recordDelayedCorrection has already
// reported it.
func (c *corrections) recordDriftEvents(at *Cluster, event func(related runtime.Object, kind, reason, message string)) {
	drifts := slices.DeleteFunc(slices.Clone(c.causes.Drifts), func(d observe.PendingDrift) bool { return d.Fight })
	for _, one := range drifts[:min(len(drifts), maxReported)] {
		about := &corev1.ObjectReference{Namespace: one.Object.Namespace, Name: one.Object.Name, UID: one.UID}
		if gvk, err := at.RESTMapper().KindFor(one.Object.Resource); err == nil {
			about.SetGroupVersionKind(gvk)
		}
		event(about, corev1.EventTypeNormal, "Drift", one.String())
	}
}

// newEventReference returns a reference to an object for use in events.
func newEventReference(ref apply.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
