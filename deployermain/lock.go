// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

// otherShards is the holder in records of a lease that this replica must not acquire yet, because processes with another
// number of shards work.
const otherShards = "processes with another number of shards"

// errOutdated is the error of a replica whose number of shards is no longer valid.
var errOutdated = errors.New("the number of shards was changed")

// errNotRenewed is the error of a leader that did not renew its lease in time.
var errNotRenewed = errors.New("the lease was not renewed in time")

// lock is a lease for leader election that is not released while the replica may still write: while a call of the deployer
// is running, or after the replica failed to renew the lease, because its manager stops only afterwards. A replica acquires
// the lease only if no process with another number of shards works (see layout). If the API server forbids all requests
// with one verb for the duration of a lease, the replica stops the election and acts as the leader until the process ends.
// When it stops the election, no other replica with the same rights is the leader, because it could not renew its lease
// either. A replica with several shards never works without election.
type lock struct {
	resourcelock.Interface

	lease   *resourcelock.LeaseLock // used to set the recorder of the lease; nil in tests
	log     logr.Logger
	clock   clock.Clock
	maxWait time.Duration
	renewal time.Duration // how long the leader tries to renew the lease
	retry   time.Duration
	busy    func() bool // reports whether the deployer is processing a call
	layout  *layout

	outdated bool // the number of shards has changed while the replica was the leader
	waiting  bool // the replica waits for processes with another number of shards

	mu         sync.Mutex
	leads      bool                 // the replica has acquired the lease, and has not released it
	renewed    time.Time            // when the replica sent the last renewal that succeeded
	forbidden  map[string]time.Time // the time of the first refusal, by verb
	last       error                // the error of the last request, if the error persists until rights or settings are changed
	known      bool                 // the lease has been read or created
	withoutOne bool                 // the replica works without election
}

// newLock returns the lock of a process. The lease contains the registration r, which includes the number of shards. The
// function `busy` reports whether the deployer is processing a call.
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
		Interface: lease, lease: lease, log: log.WithName("leader-election"), clock: clock.RealClock{}, maxWait: e.LeaseDuration, renewal: e.RenewDeadline,
		retry: e.RetryPeriod, busy: busy,
		layout: &layout{
			leases: leases.Leases(e.Namespace), id: e.baseID, shards: max(r.Shards, 1), duration: e.LeaseDuration,
			clock: clock.RealClock{}, observed: map[string]observedLease{},
		},
		forbidden: map[string]time.Time{},
	}, nil
}

// setEventRecorder makes the lock record an event when the leader changes.
func (l *lock) setEventRecorder(m manager.Manager) {
	if l != nil {
		l.lease.LockConfig.EventRecorder = m.GetEventRecorderFor(l.Identity()) //nolint:staticcheck // leaderelection requires this type
	}
}

// Get reads the lease, or returns a record that names this replica as the leader if the replica works without election.
// While processes with another number of shards work, it returns a record that names another holder.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.isElectionSuspended() {
		return l.newOwnRecord()
	}
	if l.isOverdue() {
		return nil, nil, errNotRenewed
	}
	record, raw, err := l.getWhenFree(ctx)
	if (err == nil || apierrors.IsNotFound(err)) && !l.isLeader() {
		adopted, adoptErr := l.layout.tryAdopt(ctx)
		switch {
		case adoptErr != nil && !l.isLayoutOptional(adoptErr):
			record, raw, err = nil, nil, adoptErr
		case adoptErr == nil && !adopted:
			l.setWaiting(true)
			return l.newRecord(otherShards)
		}
	}
	if l.recordResult("get", err) {
		return l.newOwnRecord()
	}
	return record, raw, err
}

// getWhenFree reads the lease. If another replica holds it, getWhenFree reads it again in each retry period, and at the
// moment at which it expires. It then returns a record without a holder. Without this method, a standby would notice both
// the last renewal and the expiry up to two retry periods later, because of the jitter of the election.
func (l *lock) getWhenFree(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var last []byte
	var since time.Time
	for {
		record, raw, err := l.Interface.Get(ctx)
		if err != nil || l.isLeader() || record.HolderIdentity == "" || record.HolderIdentity == l.Identity() {
			return record, raw, err
		}
		l.recordResult("get", nil)
		if now := l.clock.Now(); last == nil || !bytes.Equal(raw, last) {
			last, since = raw, now
		}
		rest := max(l.maxWait, time.Duration(record.LeaseDurationSeconds)*time.Second) - l.clock.Since(since)
		if rest < 0 {
			free := *record
			free.HolderIdentity = ""
			raw, err = json.Marshal(free)
			return &free, raw, err
		}
		if err := l.sleep(ctx, min(rest+time.Millisecond, l.retry)); err != nil {
			return nil, nil, err
		}
	}
}

// Create creates the lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.isElectionSuspended() {
		return nil
	}
	err := l.Interface.Create(ctx, record)
	if err == nil {
		err = l.waitForLayout(ctx, record)
	}
	if l.recordResult("create", err) {
		return nil
	}
	return err
}

// Update acquires or renews the lease. An empty holder releases it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.isElectionSuspended() {
		return nil
	}
	if record.HolderIdentity == "" {
		return l.release(ctx, record)
	}
	if l.outdated {
		return errOutdated
	}
	leads := l.isLeader()
	if leads { // client-go may have sent other requests since it created the record
		record.RenewTime = metav1.NewTime(l.clock.Now())
	}
	err := l.Interface.Update(ctx, record)
	switch {
	case err == nil && !leads:
		err = l.waitForLayout(ctx, record)
	case err == nil:
		l.setLeader(true, record.RenewTime.Time)
		l.checkLayout(ctx)
	}
	if l.recordResult("update", err) {
		return nil
	}
	return err
}

// release releases the lease if the replica cannot write any more. Otherwise, the lease expires.
func (l *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	switch {
	case l.busy():
		l.log.Info("not releasing the lease, because an abandoned call is still running; the lease will expire")
		return nil
	case l.outdated, l.isOverdue(): // the manager still runs, and may begin another call
		return nil
	}
	l.setLeader(false, time.Time{})
	return l.Interface.Update(ctx, record)
}

// isOverdue reports whether the leader has not renewed its lease for as long as it may try. client-go reads the lease again
// before it stops such a leader. If the server does not respond, this would take until after the lease has expired.
func (l *lock) isOverdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leads && l.clock.Since(l.renewed) >= l.renewal
}

// setLeader records whether the replica has the lease, and when it sent the last renewal.
func (l *lock) setLeader(leads bool, renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads, l.renewed = leads, renewed
}

// isLeader reports whether the replica has acquired the lease, and has not released it.
func (l *lock) isLeader() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leads
}

// waitForLayout is called when the replica has acquired the lease. It returns nil when no process with another number of
// shards can work. Until then, it renews the lease. If the number of shards was changed, waitForLayout releases the lease
// and returns an error.
func (l *lock) waitForLayout(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	renewed := record.RenewTime.Time
	for {
		current, drained, err := l.layout.checkCurrent(ctx)
		switch {
		case err == nil && current && drained, l.isLayoutOptional(err):
			if l.clock.Since(renewed) < l.maxWait/2 {
				l.setWaiting(false)
				l.setLeader(true, renewed)
				return nil
			}
		case err != nil || !current:
			return errors.Join(cmp.Or(err, errOutdated), l.Interface.Update(context.WithoutCancel(ctx), resourcelock.LeaderElectionRecord{
				LeaseDurationSeconds: 1, LeaderTransitions: record.LeaderTransitions, RenewTime: metav1.NewTime(l.clock.Now()),
			}))
		default:
			l.setWaiting(true)
			if err := l.sleep(ctx, l.retry); err != nil {
				return err
			}
		}
		renewed = l.clock.Now()
		record.RenewTime = metav1.NewTime(renewed)
		if err := l.Interface.Update(ctx, record); err != nil {
			return err
		}
	}
}

// checkLayout is called when the leader has renewed the lease of its shard. If the number of shards was changed, the
// leader does not renew the lease again, and thus stops. Otherwise, the processes with the new number would wait for it
// without limit. If the record cannot be read, the leader continues, because no other process can work while it holds
// the lease. Without shards, there are no other leaders that stop, and the record is not read.
func (l *lock) checkLayout(ctx context.Context) {
	if l.layout.shards == 1 {
		return
	}
	if current, _, err := l.layout.checkCurrent(ctx); err == nil && !current {
		l.log.Info("the number of shards was changed: this replica stops", "shards", l.layout.shards)
		l.outdated = true
	}
}

// sleep waits for a duration, or returns the error of ctx.
func (l *lock) sleep(ctx context.Context, d time.Duration) error {
	timer := l.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// setWaiting logs when the replica begins to wait for processes with another number of shards.
func (l *lock) setWaiting(waiting bool) {
	if waiting && !l.waiting {
		l.log.Info("waiting until no process with another number of shards works", "shards", l.layout.shards)
	}
	l.waiting = waiting
}

// isLayoutOptional reports whether the replica may work although it cannot read the number of shards. This is the case
// without shards if its rights allow only the lease of the election.
func (l *lock) isLayoutOptional(err error) bool {
	return l.layout.shards == 1 && apierrors.IsForbidden(err)
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

// isElectionSuspended reports whether the replica acts as the leader without election.
func (l *lock) isElectionSuspended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withoutOne
}

// recordResult records the result of a request and reports whether the replica works without election from now on.
func (l *lock) recordResult(verb string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.known = nil, l.known || err == nil
	if isPermanent(verb, err) {
		l.last = err
	}
	if !apierrors.IsForbidden(err) || l.layout.shards > 1 {
		if !apierrors.IsForbidden(err) && (err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown) {
			delete(l.forbidden, verb) // the server has responded
		}
		return false
	}
	since, refused := l.forbidden[verb]
	if !refused {
		since = l.clock.Now()
		l.forbidden[verb] = since
	}
	if l.clock.Since(since) < l.maxWait {
		return false
	}
	l.withoutOne, l.last, l.leads = true, nil, true
	l.log.Error(err, "leader election is forbidden: this replica works without it, so make sure that no other replica runs; to elect leaders, grant "+
		"get, create and update of leases and restart", "lease", l.Describe())
	return true
}

// newOwnRecord returns a record in which this replica is the holder of the lease.
func (l *lock) newOwnRecord() (*resourcelock.LeaderElectionRecord, []byte, error) {
	return l.newRecord(l.Identity())
}

// newRecord returns a record of a lease that the holder has just renewed.
func (l *lock) newRecord(holder string) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: int(l.maxWait.Seconds()), RenewTime: metav1.NewTime(l.clock.Now()),
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// isConflict reports whether another process has written an object first.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// isPermanent reports whether a request will fail until rights or settings are changed. If a get request does not find
// the lease, isPermanent returns false, because the replica can create the lease.
func isPermanent(verb string, err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) && verb != "get"
}

// checkLease returns an error if the replica can neither lead nor wait for the leader, and nil otherwise.
func (l *lock) checkLease() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return nil
	}
	return fmt.Errorf("leader election: %w", l.last)
}
