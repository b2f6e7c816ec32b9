// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// weekItems is the number of items of TestWeek with the race detector, with which each request takes several times as
// long.
const weekItems = 50

// schedulesAtRandom reports whether the Go scheduler chooses the next goroutine at random, as it does with the race
// detector. Requests of the same time then have another order in each run.
const schedulesAtRandom = true
