// SPDX-License-Identifier: Apache-2.0

// Package itemstate stores in memory what a process must remember about deploy items between their reconciles.
//
// A [Tracker] has one [Item] per deploy item. The Item decides which events and queue entries lead to a reconcile. It
// prevents the library from acting on versions that are older than the library's own writes. It also counts failures
// and refers to the [Attempt] in flight. Each Item has one lock, which guards all its fields and its Attempt. The state
// is lost when the process restarts, but the library works correctly without the lost state.
package itemstate
