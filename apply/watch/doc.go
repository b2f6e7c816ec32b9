// SPDX-License-Identifier: Apache-2.0

// Package watch sees when somebody changes what a deploy item applied, without polling.
//
// A Watcher belongs to one target. It watches the metadata of objects that carry the owner label, one watch per
// resource, and keeps about 400 bytes of each: names, UID and the key of the fields that the item owns (see
// package ownership). What the item expects is told with Expect; whatever differs is an Event:
//
//	w := watch.New(client, watch.Options{})
//	w.Start(ctx)
//	w.Subscribe(func(e watch.Event) { trigger(e.Item) })
//
//	w.Hold(item)                                     // a run begins: states in between are not judged
//	coverage, err := w.Watch(ctx, gvr, namespaces...) // before the first write
//	…                                                 // apply
//	w.Expect(item, expected)                          // the run is over
//
// After a restart Expect is called with what the inventory remembers, and reports what changed meanwhile.
//
// # Coverage
//
// A target may not allow to watch everything. Watch goes down a ladder: the whole cluster, the namespaces that
// the item uses, nothing. Coverage says how far it came and why not further. Nothing is lost when there is no watch, but
// drift is then seen by the item's schedule only, and Get knows nothing, so that each run applies. When a right is taken
// away later the watch ends, and the next Watch says so.
//
// # Get
//
// Get answers from memory what an object looks like now: equal UID and key mean that there is nothing to do.
//
// # Fights
//
// A Guard counts how often the same field had to be put right and slows that down, so that two controllers with
// different opinions do not write in a hot loop.
//
// What a watch cannot see is listed in docs/drift.md.
package watch
