// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// ConditionContested is the type of a condition that reports fights. In a fight, another manager changes an object
// again after each correction. The message names the objects, the fields and the managers. An item has this condition
// only while corrections are delayed because of a fight.
const ConditionContested lsv1alpha1.ConditionType = "Contested"

// maxContested is the maximum number of objects that the condition Contested names.
const maxContested = 5

// corrections decides for which objects a run corrects the changes of other clients. It contains the triggers (the
// reasons for the run) that the run has taken from the queue.
type corrections struct {
	item     *item
	owner    ownership.Owner
	clusters *clusters

	taken   bool // the run has taken its triggers from the queue
	settled bool // the triggers were reported in events, or returned to the queue
	all     bool // the run also corrects objects that another client changes again after each correction

	mu     sync.Mutex // guards the fields causes and later while an engine runs
	causes observe.Causes
	later  map[observe.Object]bool // objects that another client changes again after each correction; corrected later
}

// take moves the triggers (the reasons for this run) from the queue of the item to c. Further calls do nothing. If
// `delays` is false, the run corrects all objects of the item. The first call of a Landscaper job does so. Background
// runs, and later calls of a job that waits, leave the corrections that are delayed in a fight for later.
func (c *corrections) take(delays bool) {
	if !c.taken {
		c.taken = true
		c.causes, c.later = c.item.triggers.Take(delays)
		c.all = !delays || c.causes.ForceResync
	}
}

// giveBack returns the triggers to the queue, unless they were reported.
func (c *corrections) giveBack() {
	if c.taken && !c.settled {
		c.settled = true
		c.item.triggers.Return(c.causes)
	}
}

// settle reports whether the caller must report the triggers in events, and marks them as reported. It returns false if
// the run has taken no triggers, or if they were reported before.
func (c *corrections) settle() bool {
	settles := c.taken && !c.settled
	c.settled = true
	return settles
}

// may reports whether the run is allowed to correct an object that another client has changed. In the first call of a
// Landscaper job, and in a run that checks every object, it always returns true. In any other run, it returns false if
// the correction is delayed, because the other client changes the object again after each correction. A delayed
// correction is queued. To detect such a client, the deployer counts corrections, usually when a watch reports a
// change. If no watch has reported the change, the method `may` counts the correction itself.
func (c *corrections) may(at *Cluster, d apply.Drift) bool {
	if !c.taken || c.all {
		return true
	}
	object := observe.Object{Resource: d.Resource, NamespacedName: d.Ref.Key()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.causes.FindDrift(object); taken || c.later[object] {
		return taken
	}
	found := observe.Drift{Item: c.owner.UID, Object: object, UID: d.UID, Reason: observe.DriftReasonChanged, By: changes(at, object, d, c.owner.Manager())}
	one, first := c.item.triggers.AddDrift(found, c.clusters.fights.Count)
	if !one.NotBefore.After(c.clusters.keeper.rt.Clock.Now()) {
		c.item.triggers.RemoveDrifts(object)
		c.causes.Drifts = append(c.causes.Drifts, one)
		return true
	}
	c.later[object] = true
	c.item.triggers.Reschedule()
	if first && one.Fight {
		c.clusters.announce(c.item, one)
	}
	return false
}

// changes returns which manager changed an object, and which fields this manager changed. The parameter `own` is the
// item's own field manager, whose changes do not count.
func changes(at *Cluster, object observe.Object, d apply.Drift, own string) []observe.Change {
	if d.Live == nil {
		seen, _ := at.watcher.Get(object.Resource, object.NamespacedName)
		return seen.By
	}
	change := observe.Change{Manager: lastWriter(d.Live, own)}
	for _, field := range d.Fields {
		change.Fields = append(change.Fields, strings.TrimPrefix(field, "."))
	}
	return []observe.Change{change}
}

// lastWriter returns the field manager that wrote an object last, apart from the item's own manager.
func lastWriter(live metav1.Object, own string) string {
	entries := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own || entry.Subresource == "status" || entry.Time == nil
	})
	if len(entries) == 0 {
		return ""
	}
	return slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) }).Manager
}

// lookup returns the Lookup for the apply engine. If another client changes an object again after each correction, the
// next correction is delayed, and the object must stay unchanged until then. For such an object, the Lookup returns the
// state after the item's last write instead of the current state.
func (c *corrections) lookup(at *Cluster, entries []apply.Entry) apply.Lookup {
	seen := apply.Lookup(at.watcher)
	if len(c.later) == 0 {
		return seen
	}
	left := map[observe.Object]observe.State{}
	for _, entry := range entries {
		resource, err := at.ResourceOf(entry.Ref())
		if entry.Key == "" || err != nil {
			continue
		}
		object := observe.Object{Resource: resource, NamespacedName: entry.Ref().Key()}
		if c.later[object] {
			left[object] = observe.State{UID: entry.UID, Key: entry.Key}
		}
	}
	return fights{Lookup: seen, left: left}
}

// fights is a Lookup for objects that another client changes again after each correction. It hides these changes from
// the engine until the next correction is due.
type fights struct {
	apply.Lookup
	left map[observe.Object]observe.State
}

// Get returns the state that the engine must assume for an object.
func (f fights) Get(resource schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool) {
	if seen, fought := f.left[observe.Object{Resource: resource, NamespacedName: name}]; fought {
		return seen, true
	}
	return f.Lookup.Get(resource, name)
}

// contested returns text that describes the fights: the objects that another client changes again after each
// correction. If this run has corrected such an object, contested requests a later run, which checks whether the fight
// is over.
func (c *corrections) contested() string {
	contested := c.item.triggers.ListFights()
	for _, d := range c.causes.Drifts {
		if d.Fight {
			contested = append(contested, d)
			c.item.triggers.Request(c.clusters.keeper.rt.Clock.Now().Add(d.Delay))
		}
	}
	texts := map[string]bool{}
	for _, d := range contested {
		texts[d.DescribeFight()] = true
	}
	sorted := slices.Sorted(maps.Keys(texts))
	if more := len(sorted) - maxContested; more > 0 {
		sorted = append(sorted[:maxContested], fmt.Sprintf("and %d more", more))
	}
	return oneLine(strings.Join(sorted, "; "))
}
