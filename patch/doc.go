// SPDX-License-Identifier: Apache-2.0

// Package patch turns "this is how the object was, this is how it shall be" into the fewest API calls.
//
// Diff compares two versions of one object and returns Changes: at most one JSON merge patch for the
// main resource (labels, annotations, finalizers, owner references) and at most one for the status
// subresource. Nothing changed means nothing to send. A difference in any other place, above all in
// spec, is a *FieldError: code that works on an object through this package never writes its spec.
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
// Each patch carries metadata.resourceVersion, so a write on top of an outdated object fails with
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
// # What a merge patch cannot say
//
// Lists are replaced as a whole. An explicit null inside an object is the same as an absent key, here
// and in the comparison.
package patch
