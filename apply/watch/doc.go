// SPDX-License-Identifier: Apache-2.0

// Package watch detects changes to what a deploy item applied, without polling.
//
// A Watcher belongs to one target. It watches the metadata of objects that carry the owner label, with one watch per
// resource, and keeps about 400 bytes of each: names, the UID and the key of the fields that the item owns (see
// package ownership). Expect sets what the item expects, and each difference is reported as an Event:
//
//	w := watch.New(client, watch.Options{})
//	w.Start(ctx)
//	w.Subscribe(func(e watch.Event) { trigger(e.Item) })
//
//	w.Hold(item)                                     // a run begins: intermediate states are not judged
//	coverage, err := w.Watch(ctx, gvr, namespaces...) // before the first write
//	…                                                 // apply
//	w.Expect(item, expected)                          // the run is over
//
// After a restart, call Expect with the content of the inventory. It reports what changed in the meantime.
//
// # Coverage
//
// A target may not allow watching everything. Watch tries the whole cluster, then the namespaces that the item uses,
// and then gives up. Coverage describes the result and the reason for it. Nothing is lost without a watch, but drift
// is then only corrected on the item's schedule, and Get knows nothing, so each run applies every object. If a right
// is withdrawn later, the watch ends, and the next Watch reports that.
//
// # Get
//
// Get returns from memory what an object looks like now. If UID and key are equal, there is nothing to do.
//
// # Fights
//
// A Guard counts how often the same field had to be corrected and delays further corrections, so that two controllers
// with different opinions do not write in a hot loop.
//
// docs/drift.md lists what a watch cannot see.
package watch
