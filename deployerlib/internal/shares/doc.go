// SPDX-License-Identifier: Apache-2.0

// Package shares divides the workers of a deployer between the namespaces and targets of its items, so that a target
// that does not answer, or a namespace with very many items, does not keep the items of others waiting.
//
//   - The items of one target hold at most a share of the workers, by default half. With four workers or more, a
//     target that has proven itself may hold more while no item of another one waits: all but one.
//   - A target proves itself when an item of it has run to its end while the target answered. Those of a target that is
//     unhealthy, or has not proven itself, hold at most one.
//   - All these targets together hold at most half, and those of one namespace at most half of that half. Targets that are
//     unhealthy, or were so when an item of them had run to its end, hold at most half of it together: new targets do not
//     wait for them.
//   - With four workers or more there is an extra one, for an item of a namespace that holds none.
//   - A free worker goes to the namespace that holds the fewest, there to the target that holds the fewest, and there
//     to the item that has waited longest.
//
// An item without a share costs nothing: it is not in the queue, and is put back when there is a share for it.
package shares
