// SPDX-License-Identifier: Apache-2.0

// Package simulation runs a deployer in a simulated world: with a clock of its own, API servers in memory, and faults
// that a seed decides. A run of several minutes takes about a tenth of a second, so that a test can run hundreds of
// them, each with other faults at other times. The same seed leads to the same faults at the same requests.
//
// [Run] runs a [Scenario] with many seeds. In each run, two processes with leader election run the deployer, with the
// managers of package deployermain, the informers of client-go and the controller of controller-runtime. A simulated
// Landscaper creates items, gives them jobs, interrupts or aborts some of these jobs, and deletes the items. Meanwhile,
// requests fail, conflict, get lost, or take long; watches break, lag behind or expire; processes are killed at any
// request, stopped, or separated from the servers for longer than their lease.
//
// After each write, Run checks the contract of a deployer:
//
//   - Each job ends exactly once, in a final phase, and stays ended.
//   - A deployer does not write the status of an item whose job has ended, apart from the results of background runs. It
//     changes neither the spec nor the job of an item.
//   - The finalizer is removed only after Delete has succeeded.
//   - No call of the deployer overlaps another call for the same item, in any process.
//   - A process writes items only while it holds the lease, and no write of a former leader changes an item after the
//     next leader has written it.
//
// At the end, all items must be deleted, and after that nothing may be written any more. A scenario can add its own
// checks. If a check fails, Run prints the seed, searches for the fewest faults with which the check fails, and prints
// these faults and the end of the trace. See docs/simulation.md.
//
// [Server] is the API server in memory. It can also be used alone, through [Server.NewConfig].
package simulation
