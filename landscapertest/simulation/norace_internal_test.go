// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

// weekItems is the number of items of TestWeek without the race detector.
const weekItems = 1000
