// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"sync/atomic"

	"github.com/google/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// killableLock is the lock of a replica that can be killed in this process. After that, the lock sends no requests, and
// all renewals seem to succeed until the manager has stopped. Otherwise, the killed replica would lose its lease while
// it stops, and controller-runtime has a data race between the loss of a lease and the stop of a manager.
type killableLock struct {
	resourcelock.Interface

	dead atomic.Bool
}

// newLock returns the lock of a replica.
func newLock(cfg *rest.Config, namespace string) (*killableLock, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = renew / 2 // as the manager does for its own lock
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	lease := &resourcelock.LeaseLock{Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: uuid.NewString()}}
	lease.LeaseMeta.Namespace, lease.LeaseMeta.Name = namespace, leaseName
	return &killableLock{Interface: lease}, nil
}

func (l *killableLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.dead.Load() {
		return nil
	}
	if err := l.Interface.Update(ctx, record); !l.dead.Load() {
		return err
	}
	return nil // killed during the request
}
