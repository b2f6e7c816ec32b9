// SPDX-License-Identifier: Apache-2.0

// Package deployerlib is the generic reconcile of a Landscaper deployer: write
// a [Deployer], hand it to [Add], and everything that Landscaper expects of a
// deployer holds, on both revisions of its contract.
//
// A reconcile of an item walks the phases in pipeline.go:
//
//	start → fetch → responsibility → contract → should-reconcile → operate → end
//
// Extension hooks (package extension) run at fixed points of it. Deployers and hooks change the status
// of the item in memory, note changes of labels and the like in patch.FromContext, and return.
//
// What follows decides, acts and records. judge, which is pure, turns what came back into an outcome.
// The session of the item, the only writer, stores it: one write of the status carries everything, and
// one of the metadata follows if that changes. schedule, which is pure too, says when to come back.
//
// # Events
//
// An event leads to a reconcile only if the digest of the item changed: metadata, generation, phase and
// job IDs. The library's own writes are known in advance and lead to none. Failures, waits and polls are
// timed per item. A version that is older than the library's own last write is not acted on, unless live
// reads prove that resource versions went backwards.
//
// # Cancelling
//
// The context of a running call ends when the item is aborted, interrupted,
// past its deadline, or when the process shuts down; context.Cause tells which
// ([ErrAborted], [ErrInterrupted], [ErrDeadline], [ErrShutdown]).
package deployerlib
