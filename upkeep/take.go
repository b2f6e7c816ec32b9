// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
)

// Take takes what woke this run: drifts, Wake, thorough. What comes from now on
// is for the next run, so call it before you look at anything. thorough: believe
// nothing to be unchanged. giveBack notes it again for a run that fails before
// Settle, which does so itself; else nothing would begin another one. Take again
// returns the same. Apply calls it if nobody did.
func (r *Run) Take() (thorough bool, giveBack func()) {
	if r.taken == nil {
		taken := r.item.take(r.background, r.rt.Clock.Now())
		r.taken = &taken
	}
	return r.taken.thorough, r.giveBack
}

func (r *Run) giveBack() {
	if r.taken != nil && !r.settled {
		r.settled = true
		r.item.putBack(*r.taken)
	}
}

// reportTaken tells what the run put right.
func (r *Run) reportTaken() {
	if r.taken != nil && !r.settled {
		r.settled = true
		r.reportDrifts(r.taken.drifts)
		r.tellContested()
	}
}

// lookup is what an engine is told of a cluster. Objects that are fought about
// and not to be healed yet look as the item left them.
func (r *Run) lookup(to *Cluster) apply.Lookup {
	if to != r.Cluster || r.taken == nil || len(r.taken.later) == 0 {
		return to
	}
	left := map[watch.Object]apply.Seen{}
	for _, entry := range r.Inventory.Entries {
		mapping, err := to.Mapping(entry.Ref().GVK())
		if entry.Key == "" || err != nil || mapping == nil {
			continue
		}
		object := watch.Object{Resource: mapping.Resource, NamespacedName: entry.Ref().Key()}
		if r.taken.later[object] {
			left[object] = apply.Seen{UID: entry.UID, Key: entry.Key}
		}
	}
	return fights{Lookup: to, left: left}
}

// fights hides objects that are fought about.
type fights struct {
	apply.Lookup
	left map[watch.Object]apply.Seen
}

// Seen is what the engine is to believe about an object.
func (f fights) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	if seen, fought := f.left[watch.Object{Resource: resource, NamespacedName: name}]; fought {
		return seen, true
	}
	return f.Lookup.Seen(resource, name)
}
