// SPDX-License-Identifier: Apache-2.0

package simulation

import "testing"

// maxShrinks is the maximum number of runs in which shrink searches for fewer faults.
const maxShrinks = 150

// shrink removes faults from a failed run as long as the run still fails, first many at once and then single ones. It
// returns the failed run with the fewest faults that it has found.
func shrink(t *testing.T, s *Scenario, failed *World) *World {
	t.Helper()
	best, runs := failed, 0
	try := func(faults []Fault) bool {
		runs++
		only := map[string]Fault{}
		for _, f := range faults {
			only[f.At] = f
		}
		w := runSeed(t, s, &plan{seed: failed.seed, only: only})
		if w.failure == nil {
			return false
		}
		best = w
		return true
	}
	for size := max(len(best.faults)/2, 1); runs < maxShrinks; {
		removed := false
		for from := 0; from < len(best.faults) && runs < maxShrinks; {
			rest := append([]Fault{}, best.faults[:from]...)
			rest = append(rest, best.faults[min(from+size, len(best.faults)):]...)
			if try(rest) {
				removed = true
			} else {
				from += size
			}
		}
		if size == 1 && !removed {
			break
		}
		size = max(size/2, 1)
	}
	return best
}
