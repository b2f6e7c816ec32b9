// SPDX-License-Identifier: Apache-2.0

// Package itemstate holds what a process knows about deploy items between their reconciles.
//
// A [Tracker] has one [Item] per deploy item. The Item decides which events and queue entries lead
// to a reconcile, protects against acting on versions that are older than what this process has
// written, counts failures, and knows the [Attempt] in flight. One lock guards an Item with
// everything in it. Nothing in this package is needed for correctness after a restart.
package itemstate
