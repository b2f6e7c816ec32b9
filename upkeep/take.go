// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
)

// Take consumes the triggers of this run (drift, Wake, thorough). Later triggers start another run, so call Take
// before looking at anything. If thorough is true, no object may be trusted to be unchanged. If the run fails before
// Settle, the caller must call giveBack; otherwise the triggers are lost. Settle calls it itself. Further calls of
// Take return the same. Apply calls Take if the deployer did not.
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

// reportTaken reports what the run corrected.
func (r *Run) reportTaken() {
	if r.taken != nil && !r.settled {
		r.settled = true
		r.reportDrifts(r.taken.drifts)
		r.tellContested()
	}
}

// lookup returns the Lookup of a cluster for an engine. Objects that are fought about and not to be corrected yet
// look as the item left them.
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

// fights is a Lookup that hides changes of objects that are fought about.
type fights struct {
	apply.Lookup
	left map[watch.Object]apply.Seen
}

// Seen returns what the engine is to assume about an object.
func (f fights) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	if seen, fought := f.left[watch.Object{Resource: resource, NamespacedName: name}]; fought {
		return seen, true
	}
	return f.Lookup.Seen(resource, name)
}
