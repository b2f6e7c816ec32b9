// SPDX-License-Identifier: Apache-2.0

// Package itemstate holds what a process knows about deploy items between their reconciles.
//
// A [Tracker] has one [Item] per deploy item. The Item decides which events and queue entries lead to a reconcile,
// prevents the library from acting on versions that are older than its own writes, counts failures, and refers to the
// [Attempt] in flight. One lock guards an Item with everything in it. After a restart, correctness does not depend on
// this state.
package itemstate
