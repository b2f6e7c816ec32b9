// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployermain/registration"
)

// lock is a lease for leader election that is not released while a call of the deployer is still running. If the API
// server forbids all requests with one verb for the duration of a lease, the replica stops the election and acts as the
// leader until the process ends. When it stops the election, no other replica with the same rights is the leader,
// because it could not renew its lease either.
type lock struct {
	resourcelock.Interface

	lease    *resourcelock.LeaseLock // used to set the recorder of the lease; nil in tests
	log      logr.Logger
	clock    clock.PassiveClock
	patience time.Duration
	busy     func() bool // reports whether the deployer is processing a call

	mu         sync.Mutex
	forbidden  map[string]time.Time // the time of the first refusal, by verb
	last       error                // the error of the last request, if the error persists until rights or settings are changed
	known      bool                 // the lease has been read or created
	withoutOne bool                 // the replica works without election
}

// newLock returns the lock of a process. The lease contains the registration r. The function `busy` reports whether the
// deployer is processing a call.
func newLock(cfg *rest.Config, e Election, r registration.Registration, log logr.Logger, busy func() bool) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	cfg = rest.AddUserAgent(cfg, "leader-election")
	cfg.Timeout = max(e.RenewDeadline/2, time.Second) // a single request that hangs must not lead to the loss of the lease
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	lease := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.ID}, Client: registrar{LeasesGetter: leases, value: r.Encode()},
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	return &lock{
		Interface: lease, lease: lease, log: log.WithName("leader-election"), clock: clock.RealClock{}, patience: e.LeaseDuration, busy: busy,
		forbidden: map[string]time.Time{},
	}, nil
}

// recordWith makes the lock record an event when the leader changes.
func (l *lock) recordWith(m manager.Manager) {
	if l != nil {
		l.lease.LockConfig.EventRecorder = m.GetEventRecorderFor(l.Identity()) //nolint:staticcheck // leaderelection requires this type
	}
}

// Get reads the lease, or returns a record that names this replica as the leader if the replica works without election.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.works() {
		return l.own()
	}
	record, raw, err := l.Interface.Get(ctx)
	if l.note("get", err) {
		return l.own()
	}
	return record, raw, err
}

// Create creates the lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.works() {
		return nil
	}
	err := l.Interface.Create(ctx, record)
	if l.note("create", err) {
		return nil
	}
	return err
}

// Update renews the lease. An empty holder releases it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.works() {
		return nil
	}
	if record.HolderIdentity == "" && l.busy() {
		l.log.Info("not releasing the lease, because an abandoned call is still running; the lease will expire")
		return nil
	}
	err := l.Interface.Update(ctx, record)
	if l.note("update", err) {
		return nil
	}
	return err
}

// RecordEvent records an event about the leader on the lease.
func (l *lock) RecordEvent(text string) {
	l.mu.Lock()
	known := l.known
	l.mu.Unlock()
	if known {
		l.Interface.RecordEvent(text)
	}
}

// works reports whether the replica acts as the leader without election.
func (l *lock) works() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withoutOne
}

// note records the result of a request and reports whether the replica works without election from now on.
func (l *lock) note(verb string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.known = nil, l.known || err == nil
	if hopeless(verb, err) {
		l.last = err
	}
	if !apierrors.IsForbidden(err) {
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			delete(l.forbidden, verb) // the server has responded
		}
		return false
	}
	since, refused := l.forbidden[verb]
	if !refused {
		since = l.clock.Now()
		l.forbidden[verb] = since
	}
	if l.clock.Since(since) < l.patience {
		return false
	}
	l.withoutOne, l.last = true, nil
	l.log.Error(err, "leader election is forbidden: this replica works without it, so make sure that no other replica runs; to elect leaders, grant "+
		"get, create and update of leases and restart", "lease", l.Describe())
	return true
}

// The method `own` returns a record in which this replica is the holder of the lease.
func (l *lock) own() (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity: l.Identity(), LeaseDurationSeconds: int(l.patience.Seconds()), RenewTime: metav1.NewTime(l.clock.Now()),
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// hopeless reports whether a request will fail until rights or settings are changed. If a get request does not find the
// lease, hopeless returns false, because the replica can create the lease.
func hopeless(verb string, err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) && verb != "get"
}

// fault returns an error if the replica can neither lead nor wait for the leader, and nil otherwise.
func (l *lock) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return nil
	}
	return fmt.Errorf("leader election: %w", l.last)
}
