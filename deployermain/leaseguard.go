// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"time"
)

// leaseGuard stops the manager of a leader before its lease can expire. client-go alone is not enough: it counts the time
// until it must stop from the response to a renewal, but a standby counts from the time at which the renewal took effect,
// which may be many seconds earlier.
type leaseGuard struct{ lock *lock }

// NeedLeaderElection returns true, because only a leader has a lease.
func (leaseGuard) NeedLeaderElection() bool { return true }

// Start returns errNotRenewed when the lease is about to expire, and nil when ctx is done.
func (g leaseGuard) Start(ctx context.Context) error {
	for {
		left := g.lock.getTimeLeft()
		if left <= 0 {
			g.lock.log.Error(errNotRenewed, "this replica stops")
			return errNotRenewed
		}
		if err := g.lock.sleep(ctx, left); errors.Is(err, context.Canceled) {
			return nil
		}
	}
}

// getTimeLeft returns how long the replica may remain the leader without another renewal. The limit is between the time for
// which client-go tries to renew the lease and the duration of the lease. The rest of the duration is for calls that are
// being cancelled. It is also needed because a standby compares the times of renewals in seconds.
func (l *lock) getTimeLeft() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := (l.renewal + l.maxWait) / 2
	if l.withoutOne || !l.leads {
		return limit
	}
	return limit - l.clock.Since(l.renewed)
}
