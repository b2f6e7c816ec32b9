// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

// schedulesAtRandom reports whether the Go scheduler chooses the next goroutine at random, which it does only with the
// race detector.
const schedulesAtRandom = false
