// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// weekItems is the number of items of TestWeek with the race detector, with which each request takes several times as
// long.
const weekItems = 50
