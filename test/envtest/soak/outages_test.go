// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// outage describes a time in which a part of the control plane is not available.
type outage struct {
	name string
	at   time.Duration // time since the beginning of the test
	lets time.Duration // duration of the outage
	stop func() error
	back func() error
}

// newOutages returns the outages for a test of the given duration.
func newOutages(total time.Duration) []outage {
	server := outage{name: "the API server restarts", stop: func() error { return cp.StopAPIServer() }, back: func() error { return cp.StartAPIServer() }}
	etcd := outage{name: "etcd is away", stop: func() error { return cp.StopEtcd() }, back: func() error { return cp.StartEtcd() }, lets: 3 * time.Second}
	server.at, etcd.at = total/4, total*3/5
	if total < 2*time.Minute {
		return []outage{server, etcd}
	}
	again := server
	server.at, etcd.at, again.at, etcd.lets = total/4, total/2, total*3/4, 10*time.Second
	return []outage{server, etcd, again}
}

// runOutages causes the outages. It returns when all parts of the control plane are available again after the last
// outage.
func runOutages(ctx context.Context, all []outage, began time.Time) error {
	var errs []error
	for _, o := range all {
		sleepContext(ctx, time.Until(began.Add(o.at)))
		if err := o.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.name, err))
		}
		sleepContext(ctx, o.lets)
		if err := o.back(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.name, err))
		}
	}
	return errors.Join(errs...)
}

// stopLeaders kills the leader every few seconds, except in the last quarter of the time. A new leader processes all
// items and thus corrects mistakes of the old leader. In the last quarter, the leader is the replica in this process.
// Some of its requests fail, and it must recover without the help of a new leader.
func (w *env) stopLeaders(ctx context.Context, c *replicaSet, began time.Time) {
	random := w.newRandom(killerDice)
	for time.Since(began) < *duration*3/4 {
		sleepContext(ctx, 4*time.Second+time.Duration(random.IntN(3000))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		c.stopLeader(ctx)
	}
	if !c.isLeaderLocal() {
		c.stopLeader(ctx)
	}
}

// sleepContext waits for the given time, or until ctx is done.
func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
