// SPDX-License-Identifier: Apache-2.0

package managed

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

	taken       bool // the run has taken its triggers from the queue
	reported    bool // the triggers were reported in events, or returned to the queue
	correctsAll bool // the run also corrects objects that another client changes again after each correction

	mu      sync.Mutex // guards the fields causes and later while an engine runs
	causes  observe.Causes
	delayed map[observe.Object]bool // objects that another client changes again after each correction; corrected later
}

// takeTriggers moves the triggers (the reasons for this run) from the queue of the item to c. Further calls do nothing.
// If `delays` is false, the run corrects all objects of the item. The first call of a Landscaper job does so.
// Background runs, and later calls of a job that waits, leave the corrections that are delayed in a fight for later.
func (c *corrections) takeTriggers(delays bool) {
	if !c.taken {
		c.taken = true
		c.causes, c.delayed = c.item.triggers.TakeCauses(delays)
		c.correctsAll = !delays || c.causes.ForceResync
	}
}

// returnTriggers returns the triggers to the queue, unless they were reported.
func (c *corrections) returnTriggers() {
	if c.taken && !c.reported {
		c.reported = true
		c.item.triggers.ReturnCauses(c.causes)
	}
}

// markReported reports whether the caller must report the triggers in events, and marks them as reported. It returns
// false if the run has taken no triggers, or if they were reported before.
func (c *corrections) markReported() bool {
	settles := c.taken && !c.reported
	c.reported = true
	return settles
}

// isAllowed reports whether the run is allowed to correct an object that another client has changed. In the first call
// of a Landscaper job, and in a run that checks every object, it always returns true. In any other run, it returns
// false if the correction is delayed, because the other client changes the object again after each correction. A
// delayed correction is queued. To detect such a client, the deployer counts corrections, usually when a watch reports
// a change. If no watch has reported the change, the method `may` counts the correction itself.
func (c *corrections) isAllowed(at *Cluster, d apply.DriftedObject) bool {
	if !c.taken || c.correctsAll {
		return true
	}
	object := observe.Object{Resource: d.Resource, NamespacedName: d.Ref.Key()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.causes.FindDrift(object); taken || c.delayed[object] {
		return taken
	}
	found := observe.Drift{Item: c.owner.UID, Object: object, UID: d.UID, Reason: observe.DriftReasonChanged, Changes: listChanges(at, object, d, c.owner.FieldManager())}
	one, first := c.item.triggers.AddDrift(found, c.clusters.fights.AddCorrection)
	if !one.NotBefore.After(c.clusters.manager.rt.Clock.Now()) {
		c.item.triggers.RemoveDrifts(object)
		c.causes.Drifts = append(c.causes.Drifts, one)
		return true
	}
	c.delayed[object] = true
	c.item.triggers.RequestIfDue()
	if first && one.Fight {
		c.clusters.recordDelayedCorrection(c.item, one)
	}
	return false
}

// listChanges returns which manager changed an object, and which fields this manager changed. Changes of own, the
// item's own field manager, do not count.
func listChanges(at *Cluster, object observe.Object, d apply.DriftedObject, own string) []observe.Change {
	if d.Live == nil {
		seen, _ := at.watcher.Get(object.Resource, object.NamespacedName)
		return seen.Changes
	}
	change := observe.Change{Manager: getLastWriter(d.Live, own)}
	for _, field := range d.Fields {
		change.Fields = append(change.Fields, strings.TrimPrefix(field, "."))
	}
	return []observe.Change{change}
}

// getLastWriter returns the field manager that wrote an object last, apart from the item's own manager.
func getLastWriter(live metav1.Object, own string) string {
	entries := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own || entry.Subresource == "status" || entry.Time == nil
	})
	if len(entries) == 0 {
		return ""
	}
	return slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) }).Manager
}

// newLookup returns the Lookup for the apply engine. If another client changes an object again after each correction,
// the next correction is delayed, and the object must stay unchanged until then. For such an object, the Lookup returns
// the state after the item's last write instead of the current state.
func (c *corrections) newLookup(at *Cluster, entries []apply.Entry) apply.Lookup {
	seen := apply.Lookup(at.watcher)
	if len(c.delayed) == 0 {
		return seen
	}
	left := map[observe.Object]observe.State{}
	for _, entry := range entries {
		resource, err := at.FindResource(entry.Ref())
		if entry.Fingerprint == "" || err != nil {
			continue
		}
		object := observe.Object{Resource: resource, NamespacedName: entry.Ref().Key()}
		if c.delayed[object] {
			left[object] = observe.State{UID: entry.UID, Fingerprint: entry.Fingerprint}
		}
	}
	return fightLookup{Lookup: seen, states: left}
}

// fightLookup is a Lookup for objects that another client changes again after each correction. It hides these changes
// from the engine until the next correction is due.
type fightLookup struct {
	apply.Lookup
	states map[observe.Object]observe.State
}

// Get returns the state that the engine must assume for an object.
func (f fightLookup) Get(resource schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool) {
	if seen, fought := f.states[observe.Object{Resource: resource, NamespacedName: name}]; fought {
		return seen, true
	}
	return f.Lookup.Get(resource, name)
}

// formatContested returns text that describes the fights: the objects that another client changes again after each
// correction. If this run has corrected such an object, contested requests a later run, which checks whether the fight
// is over.
func (c *corrections) formatContested() string {
	contested := c.item.triggers.ListFights()
	for _, d := range c.causes.Drifts {
		if d.Fight {
			contested = append(contested, d)
			c.item.triggers.Request(c.clusters.manager.rt.Clock.Now().Add(d.Delay))
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
