// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation_test

// seeds is the number of seeds without the race detector.
const seeds = 300
