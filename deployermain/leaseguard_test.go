// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// slowLease is a lease whose renewals take effect at once, and whose responses take time.
type slowLease struct {
	fakeLease
	delay time.Duration
}

func (f *slowLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	defer pass(f.delay)
	return f.fakeLease.Update(ctx, record)
}

// newSlowLock returns a lock of a leader with the clock of a bubble, and its lease.
func newSlowLock(t *testing.T) (*lock, *slowLease) {
	t.Helper()
	lease := &slowLease{}
	l, _ := newFakeLock(&lease.fakeLease, false)
	l.Interface, l.clock, l.layout.clock = lease, clock.RealClock{}, clock.RealClock{}
	renew(t, l)
	return l, lease
}

// renew renews the lease of a lock.
func renew(t *testing.T, l *lock) {
	t.Helper()
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.Now()}); err != nil {
		t.Fatal(err)
	}
}

// blockedManager is a manager that takes a minute to stop.
type blockedManager struct{ manager.Manager }

func (blockedManager) Start(ctx context.Context) error {
	<-ctx.Done()
	pass(time.Minute)
	return nil
}

func TestLeaseGuard(t *testing.T) {
	// start starts a manager with a lock.
	start := func(ctx context.Context, l *lock) <-chan error {
		done := make(chan error, 1)
		go func() { done <- (&guardedManager{Manager: blockedManager{}, lock: l}).Start(ctx) }()
		return done
	}
	t.Run("a leader stops before its lease expires, even if the response to a renewal was late [Z1]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, lease := newSlowLock(t)
			done, sent := start(t.Context(), l), time.Now()
			lease.delay = 9 * time.Second
			renew(t, l)
			err := <-done
			if took := time.Since(sent); !errors.Is(err, errNotRenewed) || took < l.renewal || took >= l.maxWait-time.Second {
				t.Errorf("Start(...): got %v after %s", err, took)
			}
			pass(time.Minute) // until the manager has stopped
		})
	})
	t.Run("a manager that is stopping ends before its lease expires [Z1]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := newSlowLock(t)
			ctx, cancel := context.WithCancel(t.Context())
			done, sent := start(ctx, l), time.Now()
			cancel()
			if err := <-done; !errors.Is(err, errNotRenewed) || time.Since(sent) >= l.maxWait-time.Second {
				t.Errorf("Start(...): got %v after %s", err, time.Since(sent))
			}
			pass(time.Minute) // until the manager has stopped
		})
	})
	t.Run("the time of a renewal is when it is sent, not when the attempt began [Z1]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, lease := newSlowLock(t)
			record := resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.Now()}
			pass(9 * time.Second)
			if err := l.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			if got := lease.held.RenewTime.Time; !got.Equal(time.Now()) {
				t.Errorf("RenewTime: want %s, got %s", time.Now(), got)
			}
		})
	})
	t.Run("a leader that renews its lease, or works without one, does not stop [F49] [F56]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := newSlowLock(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := start(ctx, l)
			for range 10 {
				pass(9 * time.Second)
				renew(t, l)
			}
			l.mu.Lock()
			l.withoutOne = true
			l.mu.Unlock()
			pass(time.Hour)
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Start(...): got %v", err)
			}
		})
	})
}
