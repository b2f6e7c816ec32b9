// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"

	"github.com/deployerkit/deployerkit/apply"
)

// printsOf returns fingerprints of children whose strategy would read them each time. A fingerprint covers the wanted
// object and the observed version. The engine itself only knows for server-side apply that there is nothing to do.
func printsOf(desired []apply.Desired, children Children) map[apply.Ref]fingerprint {
	versions := map[apply.Ref]string{}
	for _, child := range children {
		versions[child.Ref()] = string(child.content().GetUID()) + "/" + child.content().GetResourceVersion()
	}
	out := map[apply.Ref]fingerprint{}
	for _, one := range desired {
		ref := apply.RefOf(one.Object)
		if version := versions[ref]; version != "" && one.Strategy != apply.Apply && one.Policy != apply.Retain {
			out[ref] = printOf(version, one.Strategy, one.Object.Object)
		}
	}
	return out
}

// skip leaves out children that the engine has already processed in the version that is observed now.
func (r *run) skip(desired []apply.Desired, prints map[apply.Ref]fingerprint) []apply.Desired {
	thorough, _ := r.up.Take()
	if thorough || len(prints) == 0 {
		return desired
	}
	entries := map[apply.Ref]apply.Entry{}
	for _, entry := range r.up.Inventory.Entries {
		entries[entry.Ref()] = entry
	}
	out := slices.Clone(desired)
	r.skipped = map[apply.Ref]apply.Entry{}
	for i := range out {
		ref := apply.RefOf(out[i].Object)
		now, known := prints[ref]
		entry, listed := entries[ref]
		if known && listed && r.memory.settled[ref] == now {
			out[i].Policy = apply.Retain
			r.skipped[ref] = entry
		}
	}
	return out
}

// keepSkipped returns the inventory with the unchanged entries of the children that were left out.
func (r *run) keepSkipped(inventory apply.Inventory) apply.Inventory {
	if len(r.skipped) == 0 {
		return inventory
	}
	entries := slices.Clone(inventory.Entries)
	for i := range entries {
		if before, skipped := r.skipped[entries[i].Ref()]; skipped {
			entries[i] = before
		}
	}
	inventory.Entries = entries
	return inventory
}

// settle remembers the versions that a run has brought to the desired state. A child that the run changed gets another
// version, and is read once more. A child that keeps its version although it was written (by a replacement without the
// fields that the API server adds) cannot get any closer to the desired state.
func (m *memory) settle(prints map[apply.Ref]fingerprint, report apply.Report, err error) {
	m.settled = nil
	if err != nil {
		return
	}
	for _, ref := range report.Postponed {
		delete(prints, ref)
	}
	m.settled = prints
}
