// SPDX-License-Identifier: Apache-2.0

// Package apply writes the objects of one item to a target cluster, keeps an inventory of them, and deletes them
// again. It makes no call that is not needed.
//
//	engine := apply.New(c, mapper, apply.Options{Seen: watches, Checkpoint: store})
//	inventory, report, err := engine.Apply(ctx, owner, desired, inventory)
//	// store the inventory, even after an error
//	if err != nil {
//		return err // apply.ClassOf(err) reports whether the configuration must change
//	}
//	if !report.Done() {
//		return nil // report.Reason() explains why; call again, at the latest after report.After()
//	}
//
// # One call
//
// Apply goes through four stages: CustomResourceDefinitions, namespaces, cluster-scoped objects, namespaced objects.
// A stage begins when the previous one is finished, or at once with Options.KeepGoing. Within a stage, objects are
// written in the caller's order, and an object that fails does not stop the others. If nothing failed and nothing is
// unfinished, Apply then deletes the objects of the inventory that are no longer desired, in reverse order or in the
// order of deletion groups. Apply never waits. The Report lists what is unfinished, and the next call continues
// there.
//
// # Step by step
//
// A caller with its own order uses a Session instead. A Session has the same inventory and costs the same calls, but
// it has no stages, and it deletes only the objects that the caller names:
//
//	s := engine.Session(owner, inventory)
//	err := s.Claim(ctx, first, second)           // optional: both into the inventory, with one checkpoint
//	outcomes, err := s.Apply(ctx, first)         // with the API server's answers, if a request was needed
//	outcomes, err = s.Apply(ctx, second)
//	waiting, err := s.Delete(ctx, refs...)       // for s.Unclaimed(), once all desired objects are claimed
//	inventory, report := s.Inventory(), s.Report() // even after an error
//
// Several goroutines may use a Session at the same time, for example those that walk a graph. See
// docs/adr/0019-session.md.
//
// # No wasted call
//
// Objects are written by server-side apply, under a field manager that only this item uses. The inventory records the
// ownership key of the answer (see package ownership) and a hash of the manifest. If a watch shows the same UID and
// the same key at the next call, and the hash is the same, the object is unchanged and no call is needed. Installing
// N objects takes N writes, plus one for each object on which another manager had set fields. Installing them again
// takes none.
//
// The engine uses watches only through Options.Seen (which returns what a watch knows about an object), Options.Watch
// (which announces the resources to be written) and Report.Owned (which lists the objects as the item left them).
// Package watch provides them, and the suite test/envtest/apply connects both packages. Without watches, each call
// writes every object; such a write changes nothing if the object is unchanged.
//
// # Inventory
//
// The Inventory is a superset of the objects that may exist. It is handed to Options.Checkpoint before the first
// write, if it names objects that the stored inventory does not contain. An entry leaves it when the API server
// confirms that the object is gone, not when a delete is sent. Deletes name the UID. The process may therefore be
// killed between any two calls: the next call reaches the same result, and does not touch objects of others. See
// docs/adr/0013-inventory.md.
//
// # Ownership
//
// An object of another item causes an error that names the item, and the object is left alone. Objects of
// Options.SharedKinds may have several owners instead: each applies its own fields, and the last one deletes the
// object (docs/adr/0023-shared-objects.md). An object without an owner is adopted, with an event. An object that
// belonged to an earlier life of this item, or that Landscaper's own deployer marked with this item's name, is taken
// over together with its fields. Policy and Strategy of a Desired restrict this, as in Landscaper's manifest
// deployer. Two strategies and one policy exist only here: Recreate deletes and creates where Apply would change a
// field, OnDelete waits until another writer deletes the object, and Retain leaves an object untouched as long as it
// is desired.
//
// # Errors
//
// Each error is an *Error with the object, the field, one line of text and a class. An error of class Permanent needs
// a different configuration; one of class Retry may disappear. Values of Secrets are removed.
package apply
