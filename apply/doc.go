// SPDX-License-Identifier: Apache-2.0

// Package apply brings the objects of one item to a target cluster, keeps account of them, and takes them away
// again, without a call that is not needed.
//
//	engine := apply.New(c, mapper, apply.Options{Seen: watches, Checkpoint: store})
//	inventory, report, err := engine.Apply(ctx, owner, desired, inventory)
//	// store the inventory, also after an error
//	switch {
//	case err != nil: // apply.ClassOf(err) tells whether the configuration must change
//	case !report.Done(): // report.Reason() says what is waited for; call again, at the latest after report.After()
//	}
//
// # One call
//
// Apply goes through the stages CustomResourceDefinitions, namespaces, cluster-scoped objects, namespaced objects. A
// stage begins when the one before it is finished, or at once with Options.KeepGoing; within a stage the order is the caller's, and
// one object that fails does not stop the others. Then, and only if nothing failed and nothing is waited for,
// the objects of the inventory that are no longer desired are deleted, in reverse order or in that of
// deletion groups. Nothing in here waits: what is not finished is in the Report, and the next call goes on there.
//
// # Step by step
//
// A caller with an order of its own takes a Session instead. It has the same inventory and costs the same calls, but
// no stages, and it deletes only what it is told:
//
//	s := engine.Session(owner, inventory)
//	err := s.Claim(ctx, first, second)           // optional: both into the inventory, with one checkpoint
//	outcomes, err := s.Apply(ctx, first)         // what the API server answered, or nil: nothing had to be sent
//	outcomes, err = s.Apply(ctx, second)
//	waiting, err := s.Delete(ctx, refs...)       // of s.Unclaimed(), once all that is desired was claimed
//	inventory, report := s.Inventory(), s.Report() // also after an error
//
// Several goroutines may use it, as in the walk of a graph. See docs/adr/0019-session.md.
//
// # No wasted call
//
// Objects are written by server-side apply, under a field manager of the item's own. The ownership key of the
// answer (see package ownership) and a hash of the manifest go to the inventory. If at the next call a watch knows the
// same UID and the same key, and the hash is the same, nobody changed anything: no call. An install of N objects is N
// writes, one more for each that somebody else had set fields of; a second one is none.
//
// The engine knows watches only through Options.Seen (what do you know of this object?), Options.Watch (these resources
// come next) and Report.Owned (so were they left); package watch fits, and the suite test/envtest/apply ties them
// together. Without watches each call writes every object, which changes nothing where nothing changed.
//
// # Inventory
//
// The Inventory is a superset of what may exist. It is handed to Options.Checkpoint before the first write, if it
// names objects that the stored one does not. An entry leaves it when the API server says that the object is
// gone, never because a delete was sent. Deletes name the UID. So the process may be killed between any two
// calls: the next one ends at the same place, and touches nobody else's objects. See docs/adr/0013-inventory.md.
//
// # Whose object
//
// An object of another item is an error that names the item; the object is left alone. Objects of Options.SharedKinds
// have several owners instead: each applies its own fields, the last one deletes (docs/adr/0023-shared-objects.md). One that belongs to
// nobody is adopted, with an event. One that belonged to an earlier life of this item, or that Landscaper's own
// deployer marked with this item's name, is taken over, with its fields. Policy and Strategy of a Desired narrow
// that down, as in Landscaper's manifest deployer. Two strategies and a policy are ours: Recreate deletes and creates where
// Apply would change a field, OnDelete waits until somebody else deletes the object, and Retain keeps the hands off an
// object as long as it is desired.
//
// # Errors
//
// Each is an *Error with object, field, one line of text and what helps: Permanent needs another configuration, Retry
// may come right. Values of Secrets are cut out.
package apply
