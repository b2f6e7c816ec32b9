// SPDX-License-Identifier: Apache-2.0

// Package shares divides the workers of a deployer between the namespaces and targets of its items. For example, a
// target that does not respond does not block the items of other targets, and a namespace with very many items does not
// block the items of other namespaces.
//
//   - The items of one target use at most a share of the workers, by default half. With at least four workers, a proven
//     target may use all workers, provided that no item of another target waits. As long as a target uses more than its
//     share, there is one extra worker for an item of another target.
//   - A target is proven once a reconcile of one of its items has ended and the target responded. The items of a target
//     that is unhealthy or unproven use at most one worker.
//   - All unhealthy and unproven targets together use at most half of the workers. The unhealthy and unproven targets
//     of one namespace use at most a quarter of the workers, rounded up.
//   - A target stalls if it has not completed a response for a while, although a request is in progress, or if it is
//     unavailable. A run on a stalled target that is unhealthy or unproven only waits, so it does not count as a worker:
//     another item gets the worker. This applies to up to 100 runs at a time, and to half of them in one namespace.
//   - A target is untried if it is unproven and not suspect. Untried targets have one extra worker with at least four
//     workers, in addition to the limits for unproven targets. A run on an untried target is slow after a little less
//     than a second. It then no longer uses the extra worker, and does not count if it exceeds the limits. Such runs
//     are among the up to 100 runs of stalled targets. Every second time, the untried target whose item arrived last
//     gets the next share.
//   - A target is suspect if it is unhealthy, or was unhealthy when the last reconcile of one of its items ended. All
//     suspect targets together use at most a quarter of the workers, rounded up, so that new targets need not wait for
//     suspect targets.
//   - With at least four workers, there is another extra worker. It only runs an item of a namespace that uses no other
//     worker.
//   - A free worker goes to the namespace that uses the fewest workers, and within that namespace to the target that
//     uses the fewest workers. Of the waiting items of that target, the item with the highest priority gets the worker.
//     If several items have this priority, the item that has waited longest gets the worker.
//
// An item that waits for a share occupies no worker. It is not in the queue of the controller. When the item gets a
// share, it is added to the queue again.
package shares
