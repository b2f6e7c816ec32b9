// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// outage is something that the control plane suffers.
type outage struct {
	name string
	at   time.Duration // since the beginning
	lets time.Duration // how long it lasts
	stop func() error
	back func() error
}

// outages are what happens in the given time.
func outages(total time.Duration) []outage {
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

// suffer injects the outages. It returns when everything is available again.
func suffer(ctx context.Context, all []outage, began time.Time) error {
	var errs []error
	for _, o := range all {
		pause(ctx, time.Until(began.Add(o.at)))
		if err := o.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.name, err))
		}
		pause(ctx, o.lets)
		if err := o.back(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.name, err))
		}
	}
	return errors.Join(errs...)
}

// killLeaders kills the leader every few seconds, but not in the last quarter of the time. A new leader checks all
// items and heals what the old one missed. The last leader is therefore the one whose requests fail, and it must not
// miss anything.
func (w *env) killLeaders(ctx context.Context, c *crew, began time.Time) {
	random := w.dice(killerDice)
	for time.Since(began) < *duration*3/4 {
		pause(ctx, 4*time.Second+time.Duration(random.IntN(3000))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		c.killLeader(ctx)
	}
	if !c.leadsHere() {
		c.killLeader(ctx)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
