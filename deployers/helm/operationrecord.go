// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// operationRecord is the record of an operation. Goroutines that end the operation from outside write it as well.
type operationRecord struct {
	storage *release.Storage
	done    chan any // closed when the operation has ended

	mu     sync.Mutex
	record *release.Record // nil if the operation has no record of its own
	stored bool            // the record exists in the target
	ended  bool            // nothing may be written to the record any more
}

// create stores the record. It returns errRecordTaken if another client has created the revision.
func (o *operationRecord) create(ctx context.Context, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.storage.Create(ctx, o.record, now)
	if errors.Is(err, release.ErrConflict) {
		err = o.adoptRecord(ctx, err)
	}
	if errors.Is(err, release.ErrConflict) {
		return errRecordTaken
	}
	o.stored = o.stored || err == nil
	return err
}

// adoptRecord continues with an existing record if an earlier call of createRecord has stored it, although its answer was
// lost. Otherwise it returns the conflict.
func (o *operationRecord) adoptRecord(ctx context.Context, conflict error) error {
	existing, err := o.storage.Get(ctx, o.record.Revision())
	if _, invalid := errors.AsType[*release.Error](err); invalid || errors.Is(err, release.ErrNotFound) {
		return conflict
	}
	if err != nil {
		return err
	}
	if existing.Operation() != o.record.Operation() {
		return conflict
	}
	o.record = existing
	return nil
}

// markDeployed marks the record as deployed. It returns errInterrupted if the operation has ended.
func (o *operationRecord) markDeployed(ctx context.Context, now time.Time, text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return errInterrupted
	}
	before, description := o.record.Status(), o.record.Description()
	o.record.SetStatus(release.StatusDeployed, text)
	err := o.storage.Update(ctx, o.record, now)
	if err != nil {
		o.record.SetStatus(before, description)
	}
	return err
}

// markUninstalling marks the record as being uninstalled.
func (o *operationRecord) markUninstalling(ctx context.Context, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record.SetStatus(release.StatusUninstalling, "Deletion in progress")
	return o.storage.Update(ctx, o.record, now)
}

// markFailed marks the record as failed. It does nothing if there is no record, if the operation has ended, or if another
// client has written the record.
func (o *operationRecord) markFailed(ctx context.Context, now time.Time, text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.record == nil || !o.stored || o.ended {
		return nil
	}
	o.record.SetStatus(release.StatusFailed, text)
	err := o.storage.Update(ctx, o.record, now)
	if errors.Is(err, release.ErrConflict) {
		return nil
	}
	return err
}

// hasEnded reports whether the operation was ended from outside.
func (o *operationRecord) hasEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

// readLastRecord sets the record of an uninstall to that of the last revision. If the record is missing or cannot be
// decoded, the hooks are not known, but the objects can be deleted. It also returns all revisions.
func (o *operationRecord) readLastRecord(ctx context.Context) (former []release.Revision, err error) {
	if former, err = o.storage.List(ctx); err != nil || len(former) == 0 {
		return former, err
	}
	record, err := o.storage.Get(ctx, former[len(former)-1].Number)
	if _, invalid := errors.AsType[*release.Error](err); invalid || errors.Is(err, release.ErrNotFound) {
		return former, nil
	}
	if err != nil {
		return former, err
	}
	o.record, o.stored = record, true
	return former, nil
}
