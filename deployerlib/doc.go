// SPDX-License-Identifier: Apache-2.0

// Package deployerlib is the generic reconcile of a Landscaper deployer: write
// a [Deployer], hand it to [Add], and everything that Landscaper expects of a
// deployer holds, on both revisions of its contract.
//
// A pass over an item walks the phases in pipeline.go:
//
//	start → fetch → responsibility → contract → should-reconcile → operate → end
//
// Extension hooks (package extension) run at fixed points of it. The library
// alone writes deploy items; deployers and hooks change the item's status in
// memory, note changes of labels and the like in patch.FromContext, and return.
// One status write at the end of a pass carries everything, and one of the
// metadata if that changes.
//
// # Waking up
//
// An event wakes an item only when its print changed: metadata, generation,
// phase and job IDs. The library's own writes are known in advance and wake
// nothing. Failures, waits and polls are timed per item.
//
// # Cancelling
//
// The context of a running call ends when the item is aborted, interrupted,
// past its deadline, or when the process shuts down; context.Cause tells which
// ([ErrAborted], [ErrInterrupted], [ErrDeadline], [ErrShutdown]).
package deployerlib
