// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"sync"
	"testing"

	"github.com/deployerkit/deployerkit/faultnet"
)

// RunWithRestart runs a manager and starts another one when the network has killed the first. It calls `start` for each
// manager. The network of the second manager injects no faults. The second call of `start` runs in the background while
// the test continues. The returned function waits for a restart in progress and stops the running manager. Call it at
// the end of the scenario.
//
//	stop := landscapertest.RunWithRestart(t, network, func(n *faultnet.Network) *landscapertest.Manager {
//		return landscapertest.StartManager(t, n.Wrap(cfg), args)
//	})
func RunWithRestart(t testing.TB, network *faultnet.Network, start func(*faultnet.Network) *Manager) (stop func()) {
	t.Helper()
	process := start(network)
	over := make(chan struct{})
	var watcher sync.WaitGroup
	var failure any
	watcher.Go(func() {
		defer func() { failure = recover() }() // some test frameworks use a panic to fail a test
		select {
		case <-network.Killed():
			process.Kill()
			process = start(faultnet.Start(t, faultnet.Scenario{}))
		case <-over:
		}
	})
	return func() {
		t.Helper()
		close(over)
		watcher.Wait()
		if failure != nil {
			panic(failure)
		}
		process.Stop()
	}
}
