// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	leases    = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	forbidden = apierrors.NewForbidden(leases, "x", errors.New("no"))
	notFound  = apierrors.NewNotFound(leases, "x")
)

// fakeLease is a lease whose responses are set by the test.
type fakeLease struct {
	get, create, update error
	held                *resourcelock.LeaderElectionRecord
	requests, events    int
}

func (f *fakeLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	f.requests++
	if f.held == nil {
		return &resourcelock.LeaderElectionRecord{}, []byte("raw"), f.get
	}
	return f.held, []byte("raw"), f.get
}

func (f *fakeLease) Create(_ context.Context, ler resourcelock.LeaderElectionRecord) error {
	f.requests++
	f.held = &ler
	return f.create
}

func (f *fakeLease) Update(_ context.Context, ler resourcelock.LeaderElectionRecord) error {
	f.requests++
	f.held = &ler
	return f.update
}

func (f *fakeLease) RecordEvent(string) { f.events++ }
func (f *fakeLease) Identity() string   { return "me" }
func (f *fakeLease) Describe() string   { return "ns/x" }

// newFakeLock returns a lock with a lease of 15 s.
func newFakeLock(lease *fakeLease, busy bool) (*lock, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	return &lock{
		Interface: lease, log: logr.Discard(), clock: clk, maxWait: 15 * time.Second, renewal: 10 * time.Second, busy: func() bool { return busy },
		forbidden: map[string]time.Time{}, layout: &layout{
			leases: &storeClient{store: newLeaseStore(), call: func() error { return nil }}, id: "x", shards: 1, duration: 15 * time.Second, clock: clk, observed: map[string]observedLease{},
		},
	}, clk
}

func TestLockWithoutLeasePermissions(t *testing.T) {
	t.Run("a deployer without permission for leases starts after the duration of a lease, and logs the reason until then [F56]", func(t *testing.T) {
		lease := &fakeLease{get: forbidden}
		l, clk := newFakeLock(lease, false)
		for range 2 {
			if _, _, err := l.Get(t.Context()); !apierrors.IsForbidden(err) || l.checkLease() == nil {
				t.Fatalf("Get(...): want forbidden and not ready, got %v, %v", err, l.checkLease())
			}
			clk.Step(14 * time.Second)
		}
		record, _, err := l.Get(t.Context())
		if err != nil || record.HolderIdentity != "me" || l.checkLease() != nil {
			t.Fatalf("Get(...): want the record of this replica and ready, got %+v, %v, %v", record, err, l.checkLease())
		}
		before := lease.requests
		if err := errors.Join(l.Update(t.Context(), *record), l.Create(t.Context(), *record)); err != nil || lease.requests != before {
			t.Errorf("want no further request, got %d, %v", lease.requests-before, err)
		}
		if l.RecordEvent("became leader"); lease.events != 0 {
			t.Error("an event on a lease that does not exist")
		}
	})
	t.Run("a deployer that may only read its lease starts without it [F56]", func(t *testing.T) {
		l, clk := newFakeLock(&fakeLease{get: notFound, create: forbidden}, false)
		attempt := func() error {
			_, _, _ = l.Get(t.Context())
			return l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"})
		}
		if err := attempt(); !apierrors.IsForbidden(err) {
			t.Fatalf("want forbidden, got %v", err)
		}
		clk.Step(15 * time.Second)
		if err := attempt(); err != nil {
			t.Errorf("want the replica to work without election, got %v", err)
		}
	})
	t.Run("a deployer waits after a single refusal [F56]", func(t *testing.T) {
		lease := &fakeLease{get: forbidden}
		l, clk := newFakeLock(lease, false)
		_, _, _ = l.Get(t.Context())
		lease.get, lease.held = nil, &resourcelock.LeaderElectionRecord{LeaderTransitions: 3}
		clk.Step(10 * time.Second)
		if record, _, err := l.Get(t.Context()); err != nil || record.LeaderTransitions != 3 || l.checkLease() != nil {
			t.Fatalf("Get(...): got %+v, %v, %v", record, err, l.checkLease())
		}
		lease.get = forbidden
		clk.Step(10 * time.Second)
		if _, _, err := l.Get(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("Get(...): the time must start again, got %v", err)
		}
	})
}

func TestLockRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		busy bool
		idle time.Duration // since the last renewal
		want string
	}{
		"the lease is released when all calls have returned [F49]":                {want: ""},
		"the lease is kept while an abandoned call runs [F49]":                    {busy: true, want: "me"},
		"the lease is kept if it was not renewed in time, until it expires [F49]": {idle: 10 * time.Second, want: "me"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &fakeLease{}
			l, clk := newFakeLock(lease, tc.busy)
			for _, holder := range []string{"me", ""} {
				if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder, RenewTime: metav1.NewTime(clk.Now())}); err != nil {
					t.Fatal(err)
				}
				clk.Step(tc.idle)
			}
			if diff := cmp.Diff(tc.want, lease.held.HolderIdentity); diff != "" {
				t.Errorf("holder: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestLockThatWasNotRenewed(t *testing.T) {
	t.Run("a leader that did not renew its lease in time stops without another request [F49]", func(t *testing.T) {
		lease := &fakeLease{}
		l, clk := newFakeLock(lease, false)
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.NewTime(clk.Now())}); err != nil {
			t.Fatal(err)
		}
		before := lease.requests
		clk.Step(10 * time.Second)
		if _, _, err := l.Get(t.Context()); !errors.Is(err, errNotRenewed) || lease.requests != before {
			t.Errorf("Get(...): want errNotRenewed and no request, got %v and %d requests", err, lease.requests-before)
		}
	})
}

func TestLockFault(t *testing.T) {
	for name, tc := range map[string]struct {
		lease fakeLease
		fault bool
	}{
		"the deployer is the leader":             {fakeLease{}, false},
		"the lease does not exist":               {fakeLease{get: notFound}, false},
		"the server does not respond":            {fakeLease{get: errors.New("timeout"), create: errors.New("timeout")}, false},
		"another replica created the lease":      {fakeLease{get: notFound, create: apierrors.NewConflict(leases, "x", errors.New("late"))}, false},
		"the namespace does not exist [F56]":     {fakeLease{get: notFound, create: notFound}, true},
		"the kubeconfig is not accepted [F56]":   {fakeLease{get: notFound, create: apierrors.NewUnauthorized("who?")}, true},
		"creating the lease is forbidden [F56]":  {fakeLease{get: notFound, create: forbidden}, true},
		"the name of the lease is invalid [F56]": {fakeLease{create: apierrors.NewInvalid(schema.GroupKind{}, "x", nil)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newFakeLock(&tc.lease, false)
			_, _, _ = l.Get(t.Context())
			_ = l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"})
			if got := l.checkLease(); (got != nil) != tc.fault {
				t.Errorf("fault: want %t, got %v", tc.fault, got)
			}
		})
	}
}

func TestCountCalls(t *testing.T) {
	before := 0
	args := newDeployerArgs(func(delta int) { before += delta })
	busy := wrapCountCalls(args)
	args.CountCalls(+1)
	if !busy() || before != 1 {
		t.Errorf("a call runs: busy %t, the caller counts %d", busy(), before)
	}
	args.CountCalls(-1)
	if busy() || before != 0 {
		t.Errorf("no call runs: busy %t, the caller counts %d", busy(), before)
	}
}
