// SPDX-License-Identifier: Apache-2.0

// Package deployerlib implements the reconcile of a Landscaper deployer. Implement a [Deployer] and pass it to [Add].
// The library does everything else that Landscaper expects of a deployer, for both revisions of its contract.
//
// A reconcile of an item runs the phases in pipeline.go:
//
//	start → fetch → responsibility → contract → should-reconcile → operate → end
//
// Extension hooks (package extension) run at fixed points of it. Deployers and hooks change the status of the item in
// memory, record changes of the metadata in patch.FromContext, and return.
//
// The rest of the reconcile decides, acts and records. judge, a pure function, converts the results to an outcome. The
// session of the item, which is the only writer, stores it: one write of the status contains everything, and one of the
// metadata follows if necessary. schedule, also a pure function, returns when the item is reconciled next.
//
// # Events
//
// An event leads to a reconcile only if the digest of the item changed: metadata, generation, phase and job IDs. The
// library's own writes do not lead to one. Failures, waits and polls are timed per item. The library does not act on a
// version that is older than its own last write, unless live reads prove that resource versions went backwards.
//
// # Cancelling
//
// The context of a running call is cancelled when the item is aborted, interrupted or past its deadline, and when the
// process shuts down. context.Cause returns the reason: [ErrAborted], [ErrInterrupted], [ErrDeadline] or [ErrShutdown].
package deployerlib
