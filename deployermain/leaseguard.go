// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// guardedManager is a manager whose Start returns before the lease of the replica can expire. client-go alone is not
// enough: it counts the time until a leader must stop from the response to a renewal, but a standby counts from the time at
// which the renewal took effect, which may be many seconds earlier. It also does not end a manager that is already
// stopping, which may still write the results of calls.
type guardedManager struct {
	manager.Manager

	lock *lock
}

// Start starts the manager, and returns when it has stopped. If the lease is about to expire, Start returns errNotRenewed
// at once, and the program must end.
func (m *guardedManager) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- m.Manager.Start(ctx) }()
	for {
		left := m.lock.getTimeLeft()
		if left <= 0 {
			return errNotRenewed
		}
		timer := m.lock.clock.NewTimer(left)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C():
		}
	}
}

// getTimeLeft returns how long the replica may remain the leader without another renewal. The limit is between the time for
// which client-go tries to renew the lease and the duration of the lease. The rest of the duration is for requests that are
// on their way. It is also needed because a standby compares the times of renewals in seconds.
func (l *lock) getTimeLeft() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := (l.renewal + l.maxWait) / 2
	if l.withoutOne || !l.leads {
		return limit
	}
	return limit - l.clock.Since(l.renewed)
}
