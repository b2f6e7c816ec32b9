// SPDX-License-Identifier: Apache-2.0

// Package observe detects, without polling, changes of objects in a cluster, and decides when an item must run because
// of them. It has four parts: sources, baselines, subscriptions and triggers.
//
// A Watcher serves one cluster. It watches the metadata of objects that carry the owner label, with one watch (a
// source) per resource. For each object it stores about 400 bytes: the names, the UID and the fingerprint, which
// changes when a field that the item owns is changed or removed (see package ownership). SetBaseline specifies the
// state of an item's objects after its last write. The Watcher reports each deviation as a Drift:
//
//	w := observe.New(client, observe.Options{})
//	w.Start(ctx)
//	w.OnDrift(func(d observe.Drift) { trigger(d.Item) })
//
//	w.Suspend(item)                                   // a run begins: intermediate states are not reported
//	coverage, err := w.Watch(ctx, gvr, namespaces...) // before the first write
//	…                                                 // apply
//	w.SetBaseline(item, owned)                        // the run is over
//
// After a restart, call SetBaseline with the content of the inventory. SetBaseline then reports the changes that
// happened in the meantime.
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
// Get returns the current state of an object from memory. If its UID and fingerprint are the expected ones, the
// object need not be written.
//
// # Whole objects
//
// WatchObjects makes the Watcher store the whole objects of a resource, for callers that need the content of the
// objects. One watch then serves Get, GetObject and the detection of drift.
//
// # Subscriptions
//
// A Subscription reports the first change of objects that need not carry the owner label, such as a Secret to which an
// item refers. ForObject and ForLabels select the objects. Subscriptions to objects of the same resource share one
// watch.
//
// # Triggers
//
// Triggers collects the reasons to run an item, such as a Drift, and asks for a reconcile when the first of them is
// due.
//
// # Fights
//
// Two controllers that set different values for the same field would overwrite each other in a hot loop. A
// FightDetector counts how often the same field was corrected, and delays further corrections.
//
// docs/drift.md lists the changes that a watch cannot detect.
package observe
