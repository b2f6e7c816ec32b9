// SPDX-License-Identifier: Apache-2.0

// Package observe detects, without polling, changes to the objects that a deploy item applied.
//
// A Watcher serves one target. It watches the metadata of objects that carry the owner label, with one watch per
// resource. For each object it stores about 400 bytes: the names, the UID and the ownership key, which changes when a
// field that the item owns is changed or removed (see package ownership). Expect specifies which objects an item
// expects and in which state. The Watcher reports each deviation as an Event:
//
//	w := watch.New(client, watch.Options{})
//	w.Start(ctx)
//	w.Subscribe(func(e watch.Event) { trigger(e.Item) })
//
//	w.Hold(item)                                     // a run begins: intermediate states are not reported
//	coverage, err := w.Watch(ctx, gvr, namespaces...) // before the first write
//	…                                                 // apply
//	w.Expect(item, expected)                          // the run is over
//
// After a restart, call Expect with the content of the inventory. Expect then reports the changes that happened in the
// meantime.
//
// # Coverage
//
// Some targets restrict which objects may be watched. Watch first tries to watch the whole cluster, and then the
// namespaces that the item uses. The returned Coverage describes what is watched and why. Items work without watches
// too, but drift is then corrected only on the item's schedule. In addition, Get returns false, so each run applies
// every object. If the target withdraws a permission later, the watch ends, and the next call of Watch returns a
// Coverage that reports the refusal.
//
// # Get
//
// Get returns the current state of an object from memory. If its UID and ownership key are the expected ones, the
// object need not be written.
//
// # Whole objects
//
// WatchObjects makes the Watcher store the whole objects of a resource, for callers that need the content of the
// objects. One watch then serves Get, Object and the detection of drift.
//
// # Fights
//
// Two controllers that set different values for the same field would overwrite each other in a hot loop. A Guard counts
// how often the same field was corrected, and delays further corrections.
//
// docs/drift.md lists the changes that a watch cannot detect.
package observe
