// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation_test

// seeds is the number of seeds with the race detector, with which a run takes several times as long.
const seeds = 40
