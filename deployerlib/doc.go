// SPDX-License-Identifier: Apache-2.0

// Package deployerlib implements the reconcile of a Landscaper deployer. Implement a [Deployer] and pass it to [Add].
// The library does everything else that Landscaper expects of a deployer. It supports both revisions of the contract
// between Landscaper and its deployers.
//
// A reconcile of an item runs the phases in pipeline.go:
//
//	start → fetch → responsibility → pause → contract → should-reconcile → operate → end
//
// Extension hooks (package extension) run at fixed points of the reconcile. Deployers and hooks change the status of
// the item in memory, record changes of the metadata in patch.FromContext, and return.
//
// After the phases, the pure function `determineOutcome` converts the results of the phases to an outcome. The session
// of the item, which is the only writer, stores the outcome. It writes the whole status in one request, and then the
// metadata if necessary. The pure function `computeNext` then returns the time of the next reconcile.
//
// # Events
//
// An event leads to a reconcile only if the digest of the item has changed. The digest covers the metadata, the
// generation, the phase and the job IDs. The library's own writes do not lead to a reconcile. Each item has its own
// delays after a failure, after WaitFor and between polls. The library does not act on a version that is older than its
// own last write. There is one exception: if etcd is restored from a backup, resource versions go backwards. The
// library detects this with reads from the API server, and then acts on the older version.
//
// # Cancelling
//
// The context of a running call is cancelled when the item is aborted, interrupted or past its deadline, and when the
// process shuts down. context.Cause returns the reason: [ErrAborted], [ErrInterrupted], [ErrDeadline] or [ErrShutdown].
package deployerlib
