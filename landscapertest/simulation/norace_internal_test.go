// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

// weekItems is the number of items of TestWeek without the race detector.
const weekItems = 1000

// schedulesAtRandom reports whether the Go scheduler chooses the next goroutine at random, which it does only with the
// race detector.
const schedulesAtRandom = false
