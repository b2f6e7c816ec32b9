// SPDX-License-Identifier: Apache-2.0

// Package statuswriter is the only writer of deploy items.
//
// Each reconcile uses a [Session] to read and write its item. The session contains the version that the API server
// stored last and the working copy that hooks and the deployer change. Every write contains the resourceVersion on
// which it is based. After a conflict, the item is read once from the API server, and the changes are rebased if the
// newer version belongs to the same run.
package statuswriter
