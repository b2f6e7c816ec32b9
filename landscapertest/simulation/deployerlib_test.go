// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/simulation"
)

const fakeType = "example.com/fake"

// newUnsteady returns a deployer whose calls take some time. They succeed, fail, wait or panic, as the seed decides.
func newUnsteady(p *simulation.Process) deployerlib.Deployer {
	fake := landscapertest.NewFake()
	var mu sync.Mutex
	calls := map[string]int{}
	answer := func(ctx context.Context, in landscapertest.Input) error {
		about := fmt.Sprintf("%s %s %s", in.Item.Name, in.Item.Status.JobID, in.Action)
		mu.Lock()
		calls[about]++
		about = fmt.Sprintf("%s %s call %d", p.Name, about, calls[about])
		mu.Unlock()
		timer := time.NewTimer(time.Duration(p.World().Random(about+" takes", 3000)) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch p.World().Random(about, 12) {
		case 0:
			return errors.New("the deployer failed")
		case 1:
			return deployerlib.WaitFor("something", 2*time.Second)
		case 2:
			panic("the deployer has a defect")
		case 3:
			if err := deployerlib.Checkpoint(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionAbort} {
		fake.SetDefaultAnswer(action, answer)
	}
	return fake
}

func TestDeployerlib(t *testing.T) {
	t.Run("keeps the contract, whatever fails and whenever a process ends [Z1]", func(t *testing.T) {
		simulation.Run(t, simulation.Scenario{
			Type: fakeType, Seeds: seeds,
			New: func(p *simulation.Process) deployerlib.DeployerArgs {
				return deployerlib.DeployerArgs{Type: fakeType, Deployer: newUnsteady(p)}
			},
		})
	})
}
