// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/patch"
)

// conflictRule determines what a write does after a conflict.
type conflictRule int

const (
	// conflictRuleFail means that the attempt ends, and that the next attempt evaluates the newer version.
	conflictRuleFail conflictRule = iota
	// conflictRuleRebase means that the write is rebased, provided that the newer version belongs to the same run.
	conflictRuleRebase
)

// store writes the status, the metadata and the user patches in at most two calls. It reports whether anything had to
// be written.
func (s *Session) store(ctx context.Context, u Update, rule conflictRule) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	update := pendingUpdate{metadata: u.Metadata, userPatches: s.patches.prepareWrite()}
	if u.Metadata.isEmpty() && len(update.userPatches) == 0 && equality.Semantic.DeepEqual(&s.stored.Status, u.Status) {
		return false, nil
	}
	if err := s.readRaw(ctx, update.userPatches); err != nil {
		return false, err
	}
	own := withStatus(s.stored, u.Status, s.decision.Revision)
	u.Metadata.apply(own, s.read)
	wanted, err := s.patches.applyTo(s.raw, own, update.userPatches, s.decision.Revision)
	if err != nil {
		return false, err
	}
	changes, err := diff(s.stored, wanted)
	if u.IsOutcome {
		update.outcomeStatus = &own.Status
	}
	if update.own = changes; err == nil && len(update.userPatches) > 0 {
		update.own, err = diff(s.stored, own)
	}
	if err != nil {
		return false, fmt.Errorf("compare deploy item: %w", err)
	}
	if changes.IsEmpty() {
		s.patches.markStored()
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	s.state.ExpectWrite(itemstate.ComputeDigest(withStoredMetadata(s.stored, wanted)), itemstate.ComputeDigest(wanted))
	before := s.stored
	if err = s.send(ctx, changes, update, rule); err == nil && s.stored != before && len(update.userPatches) > 0 && s.working != s.read {
		copyPatched(s.stored, s.working)
	}
	return true, err
}

// send sends the changes and, if the parameter `rule` allows it, rebases them onto newer versions of the item.
func (s *Session) send(ctx context.Context, changes itempatch.Changes, update pendingUpdate, rule conflictRule) error {
	for range maxRebases {
		left, err := s.sendOnce(ctx, changes)
		switch {
		case err == nil:
			s.patches.markStored()
			return nil
		case notfound.IsProof(err):
			s.patches.markStored()
			s.markRemoved()
			return nil
		case !apierrors.IsConflict(err):
			return newWriteError(s.read, err)
		case rule == conflictRuleFail:
			s.MarkStale()
			return errConflict
		}
		statusStored := changes.Status != nil && left.Status == nil
		if changes, err = s.rebase(ctx, update, statusStored); err != nil {
			return err
		}
		if changes.IsEmpty() {
			s.patches.markStored()
			return nil
		}
	}
	return &writeError{err: fmt.Errorf("cannot update the deploy item: %d conflicts in a row", maxRebases)}
}

// sendOnce sends the changes and stores the response in the session.
func (s *Session) sendOnce(ctx context.Context, changes itempatch.Changes) (itempatch.Changes, error) {
	obj := &lsv1alpha1.DeployItem{}
	obj.Namespace, obj.Name = s.key.Namespace, s.key.Name
	s.writer.options.Telemetry.RecordWrite(s.key, changes)
	left, err := itempatch.Send(ctx, s.writer.options.Client, obj, changes)
	if rights, missing := errors.AsType[*patch.RightsError](err); missing {
		s.writer.options.Telemetry.RecordMissingRight(rights.Resource)
	}
	if obj.ResourceVersion != "" {
		s.setStored(obj)
	}
	return left, err
}

// rebase reads the item from the API server and returns the changes that apply the update to the version that it reads.
// If statusStored is set, these changes do not include the status. If they include the status, but this version belongs
// to another run, rebase stores only the provider status and the export reference, so that the deployer can still find
// the objects that it deployed. It then returns an error.
func (s *Session) rebase(ctx context.Context, update pendingUpdate, statusStored bool) (itempatch.Changes, error) {
	s.MarkStale()
	mine := s.stored
	fresh, err := s.readLive(ctx)
	if err != nil || fresh == nil {
		return itempatch.Changes{}, err
	}
	s.raw = nil // s.raw is the body of an older version
	if err := s.readRaw(ctx, update.userPatches); err != nil {
		return itempatch.Changes{}, err
	}
	wanted, err := update.applyTo(s, fresh)
	if err != nil {
		return itempatch.Changes{}, err
	}
	if statusStored {
		wanted.Status = fresh.Status
	}
	changes, err := diff(fresh, wanted)
	if err != nil {
		return itempatch.Changes{}, fmt.Errorf("rebase changes: %w", err)
	}
	if changes.Status != nil && !contract.IsSameRun(fresh, mine, s.decision) {
		return itempatch.Changes{}, s.keepProviderStatus(ctx, fresh)
	}
	s.stored = fresh
	return changes, nil
}

// readLive gets the item from the API server. It returns nil if the item does not exist or was replaced by another item
// of the same name. It returns an error if the response is older than the known version, because such a response may
// show another run, or another item of the same name.
func (s *Session) readLive(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
	fresh := &lsv1alpha1.DeployItem{}
	o := s.writer.options
	o.Telemetry.RecordRequest(RequestGet)
	err := o.Live.Get(ctx, s.key, fresh)
	if err == nil && !s.state.ConfirmRead(fresh.ResourceVersion, o.Clock.Now(), s.read.ResourceVersion, s.stored.ResourceVersion) {
		return nil, &writeError{err: fmt.Errorf("the API server returned version %s of the item, which is out of date", fresh.ResourceVersion)}
	}
	if notfound.IsProof(err) || err == nil && fresh.UID != s.read.UID {
		s.markRemoved()
		return nil, nil
	}
	if err != nil {
		return nil, &writeError{err: err}
	}
	fresh.ManagedFields = nil
	return fresh, nil
}

// CheckVersion reads an item from the API server and records the version of the response in the parameter `state`.
func (w *Writer) CheckVersion(ctx context.Context, key types.NamespacedName, state *itemstate.Item) error {
	fresh := &lsv1alpha1.DeployItem{}
	w.options.Telemetry.RecordRequest(RequestGet)
	if err := w.options.Live.Get(ctx, key, fresh); err != nil {
		return err
	}
	state.ConfirmRead(fresh.ResourceVersion, w.options.Clock.Now())
	return nil
}

// keepProviderStatus writes the provider status and the export reference to the item. The parameter `fresh` is the
// current version of the item. The method never returns nil. It returns errSuperseded if the values are stored, and
// also if the item changes or ceases to exist before the write.
func (s *Session) keepProviderStatus(ctx context.Context, fresh *lsv1alpha1.DeployItem) error {
	mine := &s.working.Status
	if s.unconfirmed != nil {
		mine = s.unconfirmed.Status
	}
	status := fresh.Status.DeepCopy()
	status.ProviderStatus = mine.ProviderStatus
	status.ExportReference = mine.ExportReference
	changes, err := diff(fresh, withStatus(fresh, status, s.decision.Revision))
	if err != nil || changes.IsEmpty() {
		return errors.Join(errSuperseded, err)
	}
	if _, err := s.sendOnce(ctx, changes); err != nil && !apierrors.IsConflict(err) && !notfound.IsProof(err) {
		return newWriteError(s.read, err)
	}
	return errSuperseded
}

// checkStored returns an error unless the API server still stores the given version of the item.
func (w *Writer) checkStored(ctx context.Context, stored *lsv1alpha1.DeployItem) error {
	w.options.Telemetry.RecordRequest(RequestCheckStored)
	err := itempatch.CheckStored(ctx, w.options.Client, stored.DeepCopy())
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), notfound.IsProof(err):
		return errConflict
	}
	return newWriteError(stored, err)
}
