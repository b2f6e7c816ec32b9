// SPDX-License-Identifier: Apache-2.0

// Package statuswriter is the only writer of deploy items.
//
// A [Session] is the handle of one reconcile on its item. It owns the version that the API server stored last and the
// working copy that hooks and the deployer change. Every write is bound to the resourceVersion on which it is based.
// After a conflict the item is read once from the API server, and the changes are rebased if the run is still the same.
package statuswriter
