// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"

	"github.com/deployerkit/deployerkit/apply"
)

// printsOf returns a fingerprint of each child whose update strategy would make the engine read the child in each run.
// The fingerprint covers the desired object and the observed version of the child. Children with the strategy Apply
// need no fingerprint, because the engine can detect without a request that they are unchanged.
func printsOf(desired []apply.Desired, children Children) map[apply.Ref]fingerprint {
	if !slices.ContainsFunc(desired, isRead) {
		return nil
	}
	versions := map[apply.Ref]string{}
	for _, child := range children {
		versions[child.Ref()] = string(child.content().GetUID()) + "/" + child.content().GetResourceVersion()
	}
	out := map[apply.Ref]fingerprint{}
	for _, one := range desired {
		ref := apply.RefOf(one.Object)
		if version := versions[ref]; version != "" && isRead(one) {
			out[ref] = printOf(version, one.Strategy, one.Object.Object)
		}
	}
	return out
}

// isRead reports whether the engine reads the child in each run.
func isRead(child apply.Desired) bool {
	return child.Strategy != apply.Apply && child.Policy != apply.Retain
}

// skip returns the desired objects. If the observed version of a child is known to have the desired state, the child
// gets the policy Retain, so that the engine does not read it.
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
	r.skipped = skippedChildren{}
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

// skippedChildren contains the inventory entries of the children that the engine skipped because of run.skip. The keys
// are references to the children.
type skippedChildren map[apply.Ref]apply.Entry

// keep returns a copy of the inventory. In the copy, each skipped child has the entry that it had before the run.
func (s skippedChildren) keep(inventory apply.Inventory) apply.Inventory {
	if len(s) == 0 {
		return inventory
	}
	entries := slices.Clone(inventory.Entries)
	for i := range entries {
		if before, skipped := s[entries[i].Ref()]; skipped {
			entries[i] = before
		}
	}
	inventory.Entries = entries
	return inventory
}

// settle records the fingerprints of the children that have the desired state after a run. The next run does not read
// such a child if its version has not changed since before this run. A child that this run has changed is therefore read
// once more.
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
