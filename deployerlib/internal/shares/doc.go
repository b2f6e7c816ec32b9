// SPDX-License-Identifier: Apache-2.0

// Package shares divides the workers of a deployer between the namespaces and targets of its items, so that a target
// that does not respond, or a namespace with very many items, does not block the items of others.
//
//   - The items of one target hold at most a share of the workers, by default half. With four workers or more, a proven
//     target may hold all but one while no item of another target waits.
//   - A target is proven when an item of it has run to its end while the target responded. The items of a target that
//     is unhealthy or unproven hold at most one worker.
//   - All unhealthy and unproven targets together hold at most half of the workers, and those of one namespace at most
//     half of that half. Targets that are unhealthy, or were unhealthy when an item had run to its end, hold at most
//     half of it together, so that new targets do not wait for them.
//   - With four workers or more there is an extra one, for an item of a namespace that holds none.
//   - A free worker goes to the namespace that holds the fewest, within it to the target that holds the fewest, and
//     within that to the item that has waited longest.
//
// An item without a share costs nothing. It is not in the queue, and is added again when there is a share for it.
package shares
