// SPDX-License-Identifier: Apache-2.0

package deployertest

import (
	"sync"
	"testing"
)

// Restarting starts a process and, once the network has killed it, a fresh one through a network in which nothing goes
// wrong. start is called for each of them, for the second one while the test goes on. The function that is returned waits
// for a restart that is under way and stops the process that runs; call it at the end of the story.
//
//	stop := deployertest.Restarting(t, network, func(n *deployertest.Network) *deployertest.Manager {
//		return deployertest.StartManager(t, n.Wrap(cfg), args)
//	})
func Restarting(t testing.TB, network *Network, start func(*Network) *Manager) (stop func()) {
	t.Helper()
	process := start(network)
	over := make(chan struct{})
	var watcher sync.WaitGroup
	var failure any
	watcher.Go(func() {
		defer func() { failure = recover() }() // some test frameworks panic to fail
		select {
		case <-network.Killed():
			process.Kill()
			process = start(Faults(t, Scenario{}))
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
