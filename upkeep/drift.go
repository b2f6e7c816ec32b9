// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
)

// newDriftCounter returns the metric that counts changes by other writers. Its label is the kind of the change.
func newDriftCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_drift_total", Help: "Changes to objects by other writers, by kind of change.",
	}, []string{"what"})
}

// drift describes a change by another writer, and the time at which to correct it.
type drift struct {
	watch.Event
	watch.Heal

	notBefore time.Time // the time of the correction; later than the change if the correction is delayed
}

// String returns the drift as text for events.
func (d drift) String() string {
	if !d.Fight {
		return d.Event.String()
	}
	about := d.Field
	if _, isKind := repeated[watch.What(d.Field)]; isKind {
		about = "the object"
	}
	return fmt.Sprintf("%s (a fight with %s about %s: corrected again after %s)", d.Event, d.rival(), about, d.Delay)
}

// rival returns the name of the manager with which the item fights, as text.
func (d drift) rival() string { return cmp.Or(d.Manager, "an unknown manager") }

// repeated contains, for each kind of drift, what the other manager does after each correction.
var repeated = map[watch.What]string{
	watch.Gone: "is deleted", watch.Deleting: "is deleted", watch.Replaced: "is replaced",
	watch.Relabelled: "gets the label of another item", watch.Wiped: "loses its managed fields", watch.Changed: "is changed",
}

// contest returns text that says what the other manager does after each correction.
func (d drift) contest() string {
	what := cmp.Or(d.Field, "it") + " is changed"
	if verb, isKind := repeated[watch.What(d.Field)]; isKind {
		what = "it " + verb
	}
	return fmt.Sprintf("%s: %s by %s after every correction; the next correction follows after %s",
		d.Object, what, d.rival(), d.Delay.Round(time.Millisecond))
}

// drifted adds a drift to the queue of its item and triggers a run. If the item is waiting, the throttle limits how
// often runs are triggered. If the correction is delayed, a timer triggers the run. Watchers call drifted, so it must
// not block.
func (s *clusters) drifted(e watch.Event) {
	it := s.keeper.items.find(e.Item)
	if it == nil {
		return
	}
	d, first := it.queue.drifted(e, s.guard.Heal)
	s.seen.WithLabelValues(string(e.What)).Inc()
	if d.Delay == 0 && it.waits() {
		it.throttle.event()
		return
	}
	it.queue.reschedule()
	if d.Fight && first {
		s.announce(it, d)
		it.queue.wake(s.keeper.rt.Clock.Now()) // an immediate run reports the fight in a condition
	}
}

// lost triggers a run of an item that has lost a watch. The run opens the watch again, or reports why it cannot.
// Watchers call lost, so it must not block.
func (s *clusters) lost(uid types.UID) {
	if it := s.keeper.items.find(uid); it != nil {
		it.queue.wake(s.keeper.rt.Clock.Now())
	}
}

// announce writes an event which reports that the correction of a drift is delayed.
func (s *clusters) announce(it *item, d drift) {
	item := &corev1.ObjectReference{Namespace: it.key.Namespace, Name: it.key.Name, UID: d.Item}
	item.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	about := &corev1.ObjectReference{Namespace: d.Object.Namespace, Name: d.Object.Name, UID: d.UID}
	s.keeper.event(item, about, corev1.EventTypeWarning, "Drift", d.String())
}

// maxReported is the maximum number of drifts that a run reports in events.
const maxReported = 8

// report writes events about the drifts (changes by other writers) that the run corrects, at most maxReported. It omits
// a drift whose correction was delayed, because clusters.announce has already reported it.
func (c *corrections) report(at *Cluster, event func(related runtime.Object, kind, reason, message string)) {
	drifts := slices.DeleteFunc(slices.Clone(c.drifts), func(d drift) bool { return d.Fight })
	for _, one := range drifts[:min(len(drifts), maxReported)] {
		about := &corev1.ObjectReference{Namespace: one.Object.Namespace, Name: one.Object.Name, UID: one.UID}
		if gvk, err := at.RESTMapper().KindFor(one.Object.Resource); err == nil {
			about.SetGroupVersionKind(gvk)
		}
		event(about, corev1.EventTypeNormal, "Drift", one.String())
	}
}

// related returns a reference to an object for use in events.
func related(ref apply.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
