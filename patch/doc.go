// SPDX-License-Identifier: Apache-2.0

// Package patch changes an object in the fewest API calls, and loses nobody's update.
//
// A Patch collects what shall become of an object: merge changes for simple fields, functions for what
// depends on what is stored. Apply sends both together, in at most two calls, and tells what it did:
//
//	p := &patch.Patch{}
//	p.Labels().Set("example.org/team", "blue")
//	p.Append(addFinalizer)
//	result, err := p.Apply(ctx, c, obj)
//
// It works on every object, typed or unstructured, with a status subresource or without. With functions it
// locks: after a conflict they run again on the newer body.
//
// # Two versions of one object
//
// For code that holds the object as it was and as it shall be there is a second way, which keeps the spec out
// of reach. Diff compares two versions of one object and returns Changes: at most one JSON merge patch for the
// main resource (labels, annotations, finalizers, owner references) and at most one for the status
// subresource. Nothing changed means nothing to send. A difference in any other place, above all in
// spec, is a *FieldError: code that works on an object through Diff never writes its spec.
//
// Send sends the Changes, in the order that the caller needs:
//
//	before := item.DeepCopy()
//	item.Status.Phase = "Progressing"
//	changes, err := patch.Diff(before, item)
//	…
//	left, err := patch.Send(ctx, c, item, changes, patch.MetadataFirst)
//
// # Locking
//
// Each patch of Diff carries metadata.resourceVersion, so a write on top of an outdated object fails with
// 409 Conflict (apierrors.IsConflict) and changes nothing. The second call carries the
// resourceVersion that the first one returned. Fence is the same check without a change. After a
// conflict Changes.Rebase carries what is left over to a freshly read object; whether that is allowed
// is the caller's decision.
//
// # DeployItems
//
// A DeployItem that was never processed has no stored status, but the Go type always shows one. The
// API server refuses a status without observedGeneration and a deployer without all of its fields.
// Diff therefore treats the zero status of a DeployItem as absent, sends observedGeneration with the
// first status patch, and sends status.deployer whole or not at all.
//
// Apply does the same; where it has to fill something in it locks, so that nothing stored is overwritten.
//
// # What a merge patch cannot say
//
// Lists are replaced as a whole; a function changes their items. An explicit null inside an object is the
// same as an absent key, for Diff too; a function can store one.
package patch
