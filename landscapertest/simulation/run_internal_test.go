// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func newFakeScenario() *Scenario {
	s := &Scenario{Type: "example.com/fake", New: func(*Process) deployerlib.DeployerArgs {
		return deployerlib.DeployerArgs{Type: "example.com/fake", Deployer: landscapertest.NewFake()}
	}}
	s.setDefaults()
	return s
}

// listFaults returns the faults of a run without their times, sorted.
func listFaults(w *World) []string {
	var out []string
	for _, f := range w.faults {
		out = append(out, string(f.Kind)+" at "+f.At)
	}
	slices.Sort(out)
	return out
}

func TestReplay(t *testing.T) {
	t.Run("a run with the same seed has the same faults and nearly always the same trace [Z3]", func(t *testing.T) {
		isolate(t)
		const seeds = 8
		sameTrace, sameFaults, faults := 0, 0, 0
		for seed := range uint64(seeds) {
			first, second := runSeed(t, newFakeScenario(), newPlan(seed)), runSeed(t, newFakeScenario(), newPlan(seed))
			if first.failure != nil || second.failure != nil {
				t.Fatalf("seed %d: %v, %v", seed, first.failure, second.failure)
			}
			faults += len(first.faults)
			if slices.Equal(first.trace, second.trace) {
				sameTrace++
			}
			if slices.Equal(listFaults(first), listFaults(second)) {
				sameFaults++
			}
		}
		t.Logf("%d faults; of %d seeds, %d have the same trace and %d the same faults", faults, seeds, sameTrace, sameFaults)
		if faults < seeds || sameFaults < seeds/2 {
			t.Errorf("want at least %d faults, and half of the seeds with the same faults", seeds)
		}
		if !schedulesAtRandom && sameTrace < seeds/2 {
			t.Error("want half of the seeds with the same trace")
		}
	})
}

func TestShrink(t *testing.T) {
	t.Run("a failure needs only the fault that causes it [Z3]", func(t *testing.T) {
		isolate(t)
		s := newFakeScenario()
		s.CheckWrite = func(change Write) error {
			if change.ByReplica && change.Request.Resource == "deployitems" && !strings.HasSuffix(change.Request.Client, ".1") {
				return errors.New("a process was started again")
			}
			return nil
		}
		for seed := range uint64(100) {
			failed := runSeed(t, s, newPlan(seed))
			if failed.failure == nil || len(failed.faults) < 4 {
				continue
			}
			smallest := shrink(t, s, failed)
			for _, f := range smallest.faults {
				if !slices.Contains(deadlyFaults, f.Kind) {
					t.Errorf("the fault %s is not needed for a restart", f)
				}
			}
			if n := len(smallest.faults); smallest.failure == nil || n == 0 || n > 2 {
				t.Errorf("seed %d: %d of %d faults are left, failure %v", seed, n, len(failed.faults), smallest.failure)
			}
			return
		}
		t.Error("no seed restarted a process")
	})
}
