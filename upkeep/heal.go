// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/contract"
)

// ConditionContested names objects that others change again each time they are corrected, with the field and the
// other manager. It exists only while these objects are corrected after a delay.
const ConditionContested lsv1alpha1.ConditionType = "Contested"

// maxContested limits how many objects the condition names.
const maxContested = 5

// mayHeal reports whether this run may correct an object that others changed. A job and a thorough run always may. A
// background run counts the correction, unless a watch has reported the change and it was counted then, and postpones
// it if there is a fight about the object.
func (r *Run) mayHeal(d apply.Drift) bool {
	if r.taken == nil || !r.background || r.taken.thorough {
		return true
	}
	object := watch.Object{Resource: d.Resource, NamespacedName: d.Ref.Key()}
	r.healing.Lock()
	defer r.healing.Unlock()
	if _, taken := r.taken.queued(object); taken || r.taken.later[object] {
		return taken
	}
	e := watch.Event{Item: r.Item.UID, Object: object, UID: d.UID, What: watch.Changed, By: r.changes(object, d)}
	one, first := r.item.drifted(e, func() watch.Heal { return r.clusters.guard.Heal(e) })
	if !one.notBefore.After(r.rt.Clock.Now()) {
		r.item.healed(object)
		r.taken.drifts = append(r.taken.drifts, one)
		return true
	}
	if r.taken.later == nil {
		r.taken.later = map[watch.Object]bool{}
	}
	r.taken.later[object] = true
	r.item.reschedule()
	if first && one.Fight {
		r.clusters.announce(r.item, one)
	}
	return false
}

// changes returns who changed an object, and what.
func (r *Run) changes(object watch.Object, d apply.Drift) []watch.Change {
	if d.Live == nil {
		seen, _ := r.Cluster.watcher.Get(object.Resource, object.NamespacedName)
		return seen.By
	}
	change := watch.Change{Manager: lastWriter(d.Live, r.Owner.Manager())}
	for _, field := range d.Fields {
		change.Fields = append(change.Fields, strings.TrimPrefix(field, "."))
	}
	return []watch.Change{change}
}

// lastWriter returns the field manager that wrote an object last, other than the item's own.
func lastWriter(live metav1.Object, own string) string {
	entries := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own || entry.Subresource == "status" || entry.Time == nil
	})
	if len(entries) == 0 {
		return ""
	}
	return slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) }).Manager
}

// tellContested shows in a condition which objects are fought about. After an object was corrected, a later run
// checks whether the fight is over.
func (r *Run) tellContested() {
	fights := r.item.fights()
	for _, d := range r.taken.drifts {
		if d.Fight {
			fights = append(fights, d)
			r.item.wake(r.rt.Clock.Now().Add(d.Delay))
		}
	}
	conditions := &r.Item.Status.Conditions
	if len(fights) == 0 {
		*conditions = contract.RemoveCondition(*conditions, ConditionContested)
		return
	}
	*conditions = contract.SetCondition(*conditions, ConditionContested, lsv1alpha1.ConditionTrue, "ChangedAgain", contested(fights), r.rt.Clock.Now())
}

// contested names the objects that are fought about.
func contested(fights []drift) string {
	texts := map[string]bool{}
	for _, d := range fights {
		texts[fmt.Sprintf("%s: %s is changed by %s each time it is put right, which is done again after %s",
			d.Object, cmp.Or(d.Field, "it"), cmp.Or(d.Manager, "an unknown manager"), d.Delay.Round(time.Millisecond))] = true
	}
	sorted := make([]string, 0, len(texts))
	for text := range texts {
		sorted = append(sorted, text)
	}
	slices.Sort(sorted)
	if more := len(sorted) - maxContested; more > 0 {
		sorted = append(sorted[:maxContested], fmt.Sprintf("and %d more", more))
	}
	return oneLine(strings.Join(sorted, "; "))
}
