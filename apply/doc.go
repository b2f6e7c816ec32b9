// SPDX-License-Identifier: Apache-2.0

// Package apply writes and deletes the objects of one deploy item (in short: an item) in a target cluster. It keeps an
// inventory of these objects and sends no unnecessary requests.
//
//	engine := apply.New(c, mapper, apply.Options{Watched: watches, Checkpoint: store})
//	inventory, report, err := engine.Apply(ctx, owner, desired, inventory)
//	// store the inventory, even after an error
//	if err != nil {
//		return err // apply.GetClass(err) reports whether the configuration must change
//	}
//	if !report.IsDone() {
//		return nil // report.Reason() explains why; call again, at the latest after report.RetryAfter()
//	}
//
// # One call
//
// Apply goes through five stages: CustomResourceDefinitions, namespaces, cluster-scoped objects, namespaced objects,
// and finally webhook configurations and APIServices. Within a stage, Apply writes the objects in the caller's order.
// If an object fails or is unfinished, Apply continues with all objects that do not depend on it. An object depends on
// the CustomResourceDefinition of its kind. A new webhook configuration or APIService depends on all other objects. If
// all objects are finished without errors, Apply then deletes the objects of the inventory that are no longer desired,
// in the order of Options.PruneGroups. The default is the reverse order of the stages. Apply never waits. The Report
// lists unfinished objects, and the next call continues from there.
//
// # Step by step
//
// A caller that determines the order itself uses a Session instead. A Session uses the same inventory and sends the
// same requests as Engine.Apply, but it has no stages, and it deletes only the objects that the caller names:
//
//	s := engine.NewSession(owner, inventory)
//	err := s.Claim(ctx, first, second)           // optional: adds both to the inventory with one checkpoint
//	results, err := s.Apply(ctx, first)          // with the API server's responses, if a request was needed
//	results, err = s.Apply(ctx, second)
//	waiting, err := s.Delete(ctx, refs...)       // for s.ListUnclaimed(), once all desired objects are claimed
//	inventory, report := s.Inventory(), s.Report() // even after an error
//
// Several goroutines may use a Session at the same time, for example to process a graph. See docs/adr/0019-session.md.
//
// # No unnecessary requests
//
// Objects are written by server-side apply, under a field manager that only this item uses. For each object, the
// inventory records the fingerprint from the answer (see package ownership) and a hash of the manifest. In the next
// call, an object needs no request if a watch shows the recorded UID and the recorded key, and if the hash of its
// manifest is still the same. Installing N objects requires N writes, plus one more for each object in which another
// manager had set fields. Installing them again requires no writes.
//
// Three fields connect the engine with watches. Options.Watched finds objects that a watch has reported.
// Options.StartWatch announces the resources that will be written. Report.Owned describes the state of the objects
// after the item's last write. Package observe provides the watches, and package managed connects both packages.
// Without watches, each call writes every object. Writing an unchanged object has no effect.
//
// # Inventory
//
// The Inventory is a superset of the objects that may exist. New objects are added to the inventory, and the inventory
// is passed to Options.Checkpoint, before the first write. An entry is removed when the API server confirms that the
// object is gone, not when the delete request is sent. Delete requests contain the UID. Therefore, the process may be
// killed between any two requests. The next call reaches the same result and does not change objects of other owners.
// See docs/adr/0013-inventory.md.
//
// # Ownership
//
// If an object belongs to another item, the engine does not change it and returns an error that names that item.
// Objects of Options.SharedKinds are an exception, because they may have several owners: each owner applies its own
// fields, and the last owner deletes the object (docs/adr/0023-shared-objects.md). An object without an owner is
// adopted, with an event. An object that belongs to an earlier item of the same name is taken over together with the
// fields of that item. An object that Landscaper's own deployer labelled with this item's name is taken over as well.
//
// The Policy and the Strategy of an object restrict these rules, as in Landscaper's manifest deployer. Two strategies
// and one policy exist only in this library. StrategyRecreate deletes an object and creates it again if a field
// must change. StrategyOnDelete waits until another writer deletes the object. PolicyRetain leaves an object
// unchanged as long as it is desired.
//
// # Errors
//
// Each error is an *Error with the object, the field, one line of text and a class. An error of ClassPermanent can
// only be resolved by changing the configuration. An error of ClassRetry may disappear although the configuration
// stays the same. Values of Secrets are removed from the text.
package apply
