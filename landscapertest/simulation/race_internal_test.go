// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// schedulesAtRandom reports whether the Go scheduler chooses the next goroutine at random, as it does with the race
// detector. Requests of the same time then have another order in each run.
const schedulesAtRandom = true
