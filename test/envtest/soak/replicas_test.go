// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/faultnet"
)

// replica is a running replica of the deployer: a goroutine of this process, or a separate process.
type replica struct {
	name  string
	leads chan struct{} // closed when the replica has acquired the lease
	ended chan struct{} // closed when the replica has ended completely
	err   error         // the error with which the replica ended
	kill  func()
	// killed is set if the spec has killed the replica.
	killed atomic.Bool
}

// replicaSet keeps two replicas running, as a Deployment does.
type replicaSet struct {
	t    testing.TB
	ns   string
	path string // path of a kubeconfig
	seed uint64

	mu      sync.Mutex
	slots   [2]*replica
	started int
	over    bool
	faults  []string
	running sync.WaitGroup

	networks []*faultnet.Network
	calmed   bool // if true, no more faults are injected

	kills, losses, hits int
}

// newCrew starts the replicas.
func newCrew(t testing.TB, w *env, path string) *replicaSet {
	c := &replicaSet{t: t, ns: w.Namespace, path: path, seed: w.seed}
	for slot := range c.slots {
		c.running.Go(func() { c.keep(slot) })
	}
	return c
}

// keep runs a replica in a slot, and starts another replica each time the current replica ends.
func (c *replicaSet) keep(slot int) {
	for {
		r := c.next(slot)
		if r == nil {
			return
		}
		<-r.ended
		if !c.checkEnd(r) {
			sleepContext(suiteContext, restartDelay)
		}
	}
}

// next starts a replica in a slot. In the first slot, the replica runs in this process. In the second slot, it is a
// separate process. The method returns nil if no more replicas are needed.
func (c *replicaSet) next(slot int) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	c.started++
	r := &replica{name: fmt.Sprintf("replica-%03d", c.started), leads: make(chan struct{}), ended: make(chan struct{})}
	c.slots[slot] = r
	start := c.startHere
	if slot == 1 {
		start = c.startProcess
	}
	if err := start(r); err != nil {
		r.err = err
		close(r.ended)
	}
	return r
}

// restartDelay is the delay before another start if a replica could not start.
const restartDelay = time.Second

// checkEnd checks why a replica ended. A replica may lose its lease at any time. A replica may also fail to start; in
// this case, checkEnd returns false. Any other end is recorded as a fault.
func (c *replicaSet) checkEnd(r *replica) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over || r.killed.Load():
	case r.err != nil && strings.Contains(r.err.Error(), "leader election lost"):
		c.losses++
	case r.err != nil && strings.Contains(r.err.Error(), cannotStart):
		return false
	default:
		c.faults = append(c.faults, fmt.Sprintf("%s ended by itself: %v", r.name, r.err))
	}
	return true
}

// leader returns the replica that holds the lease, or nil if there is none.
func (c *replicaSet) leader() *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.slots {
		if r != nil && isClosed(r.leads) && !isClosed(r.ended) {
			return r
		}
	}
	return nil
}

// isLeaderLocal reports whether the replica in this process is the leader.
func (c *replicaSet) isLeaderLocal() bool {
	r := c.leader()
	c.mu.Lock()
	defer c.mu.Unlock()
	return r != nil && r == c.slots[0]
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// stopLeader waits until a replica leads, and kills it.
func (c *replicaSet) stopLeader(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if r := c.leader(); r != nil {
			r.killed.Store(true)
			r.kill()
			c.mu.Lock()
			c.kills++
			c.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stopAll stops all replicas permanently and waits until they have ended.
func (c *replicaSet) stopAll() {
	c.mu.Lock()
	c.over = true
	all := c.slots
	c.mu.Unlock()
	for _, r := range all {
		if r != nil && r.kill != nil {
			r.kill()
		}
	}
	c.running.Wait()
}

// checkHealth returns an error unless both replicas run and one of them leads.
func (c *replicaSet) checkHealth() error {
	if c.leader() == nil {
		return errors.New("no replica leads")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.slots {
		if isClosed(r.ended) {
			return fmt.Errorf("%s has ended: %w", r.name, r.err)
		}
	}
	return nil
}
