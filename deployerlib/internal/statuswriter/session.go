// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/patch"
)

// Session is used by one reconcile to read and write its item. Only Checkpoint may be called while user code runs.
type Session struct {
	writer *Writer
	state  *itemstate.Item
	key    types.NamespacedName

	mu          sync.Mutex                   // held by writes, because Checkpoint may run in another goroutine
	read        *lsv1alpha1.DeployItem       // the item as the reconcile read it; shared and never changed
	stored      *lsv1alpha1.DeployItem       // the item as the API server stored it last
	working     *lsv1alpha1.DeployItem       // the copy that user code changes; until the copy is made, the same pointer as in the field `read`
	protected   *lsv1alpha1.DeployItemStatus // the status to which ResetProtected resets protected fields
	patches     userPatches
	raw         map[string]any    // the stored body, for functions in patches; nil until it was read
	decision    contract.Decision // the decision of the last write
	started     bool              // Start succeeded
	stale       bool              // another client changed the item
	removed     bool              // the item does not exist any more
	unconfirmed *Update           // an update that was not confirmed
}

// GetOriginal returns the item as the reconcile read it. The caller must not change the item.
func (s *Session) GetOriginal() *lsv1alpha1.DeployItem { return s.read }

// GetStored returns the item as the API server stored it last. The caller must not change the item.
func (s *Session) GetStored() *lsv1alpha1.DeployItem { return s.stored }

// GetWorkingCopy returns the item with the changes of user code. The caller must not change the item unless EnsureCopy
// was called before.
func (s *Session) GetWorkingCopy() *lsv1alpha1.DeployItem { return s.working }

// GetDecision returns the decision of the last write.
func (s *Session) GetDecision() contract.Decision { return s.decision }

// IsStarted reports whether the start of the run is stored.
func (s *Session) IsStarted() bool { return s.started }

// IsStale reports whether another client has changed the item. The next attempt must handle the change.
func (s *Session) IsStale() bool { return s.stale }

// MarkStale records that another client has changed the item. The next attempt must handle the change.
func (s *Session) MarkStale() {
	s.stale = true
	s.state.MarkStale()
}

// markRemoved records that the item does not exist any more.
func (s *Session) markRemoved() {
	s.removed = true
	s.state.RecordRemoval(s.read.UID)
}

func (s *Session) isRemoved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed
}

// StoreStart stores the start of a run before any action of the run: first the status, and then the finalizer and the
// annotations. If there is nothing to store, StoreStart may send a write that changes nothing, to check that the item is
// current. After a conflict, or if the item does not exist any more, StoreStart returns an error.
func (s *Session) StoreStart(ctx context.Context, d contract.Decision) error {
	s.decision = d
	status := &s.stored.Status
	if d.New || s.patches.hasUnstored() || hasObsoleteConditions(s.stored, d) {
		s.working.Status.Conditions = contract.RemoveCondition(s.working.Status.Conditions, contract.ConditionDeployed)
		status = &s.working.Status
	}
	metadata := MetadataPatch{AddFinalizer: s.read.DeletionTimestamp == nil, RemoveAnnotations: d.RemoveAnnotations}
	wrote, err := s.store(ctx, Update{Status: status, Metadata: metadata}, conflictRuleFail)
	if err != nil {
		return err
	}
	if s.isRemoved() {
		return errRemoved
	}
	if mine := s.state.MarkOwnRun(s.working); !wrote && s.mustCheckStored(d, mine) {
		if err := s.writer.checkStored(ctx, s.stored); err != nil {
			s.state.ClearOwnRun()
			return err
		}
		s.state.RecordWrite(s.stored)
	}
	s.started = true
	return nil
}

// mustCheckStored reports whether StoreStart must check that the item is current although it has written nothing. This
// is the case if another process began the run. With leader election, it is also the case for a background run if this
// process has neither written the item nor read it from the API server.
func (s *Session) mustCheckStored(d contract.Decision, mine bool) bool {
	if d.Background {
		return s.writer.options.LeaderElection && !s.state.HasConfirmedVersion()
	}
	return !mine
}

// hasObsoleteConditions reports whether the item shows conditions that become obsolete when the deployer is called.
func hasObsoleteConditions(stored *lsv1alpha1.DeployItem, d contract.Decision) bool {
	return contract.GetCondition(stored.Status.Conditions, contract.ConditionDeployed) != nil || !contract.HasPausedCondition(stored, d)
}

// StoreProgress stores progress during a call. It never writes phase, errors or job fields. If the item does not exist
// any more, it returns an error.
func (s *Session) StoreProgress(ctx context.Context) error {
	status := s.working.Status.DeepCopy()
	guard.ResetProtected(s.protected, status)
	contract.SetMissingTimes(s.stored.Status.Conditions, status.Conditions, s.writer.options.Clock.Now())
	if err := contract.CheckProviderStatus(status.ProviderStatus); err != nil {
		return err
	}
	status.Phase, status.LastError = s.stored.Status.Phase, s.stored.Status.LastError
	_, err := s.store(ctx, Update{Status: status}, conflictRuleRebase)
	if patch.IsTooLarge(err) { // a retry would not help, and the objects in the refused provider status have not been created yet
		return &contract.CodedError{
			Operation: "Checkpoint", Reason: ReasonTooLarge, Err: err, Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
		}
	}
	if err == nil && s.isRemoved() {
		return errRemoved
	}
	return err
}

// FindForeignChange returns the path of a status field that user code has written with its own client, or "" if there
// is none. If user code writes the working copy, its client also stores the new resourceVersion in the working copy.
// FindForeignChange therefore reads the item from the API server only if this resourceVersion has changed. If
// FindForeignChange returns a path, the version at the API server becomes the base of the next write.
func (s *Session) FindForeignChange(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working.ResourceVersion == s.stored.ResourceVersion {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	fresh, err := s.readLive(ctx)
	if err != nil || fresh == nil {
		return "" // the next write detects a conflict
	}
	path := guard.FindForeignChange(&s.stored.Status, &fresh.Status)
	if path != "" {
		s.MarkStale()
		s.stored, s.raw = fresh, nil
	}
	return path
}

// ReasonTooLarge is the reason of an error about an item that the API server cannot store.
const ReasonTooLarge = "StatusTooLarge"

// StoreOutcome stores the outcome of an attempt.
func (s *Session) StoreOutcome(ctx context.Context, u Update) Result {
	s.decision = u.Decision
	if !u.Replaces && u.Metadata.RemoveFinalizer && len(s.stored.Finalizers) <= 1 { // the status and the patches are deleted with the item
		u.Status = &s.stored.Status
		s.patches.drop()
	}
	rule := conflictRuleRebase
	if !s.started && !u.Replaces {
		rule = conflictRuleFail
	}
	_, err := s.store(ctx, u, rule)
	if err == nil && u.Decision.New && !s.started {
		s.state.MarkOwnRun(&lsv1alpha1.DeployItem{ObjectMeta: s.stored.ObjectMeta, Status: *u.Status})
	}
	res := ToResult(err)
	if res.Kind == ResultUnconfirmed && u.Keep {
		s.unconfirmed = &u
		s.state.KeepUnconfirmed(s)
	}
	return res
}

// KeepProviderStatus stores only the provider status and the export reference of the working copy. Everything else is
// dropped, because the run is no longer current. KeepProviderStatus reports whether the item still exists.
func (s *Session) KeepProviderStatus(ctx context.Context, d contract.Decision) (exists bool, err error) {
	s.decision = d
	s.MarkStale()
	fresh, err := s.readLive(ctx)
	if err != nil || fresh == nil {
		return false, err
	}
	return true, s.keepProviderStatus(ctx, fresh)
}

// Flush writes the unconfirmed update to the current version of the item. It does not write the update if the update is
// already stored, if the item does not exist, or if the run is no longer current. An update that is still not confirmed
// is kept for the next Flush.
func (s *Session) Flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	err := s.flush(ctx)
	if ToResult(err).Kind == ResultUnconfirmed {
		s.state.KeepUnconfirmed(s)
	}
	return err
}

func (s *Session) flush(ctx context.Context) error {
	wanted := withStatus(s.stored, s.unconfirmed.Status, s.decision.Revision)
	own, err := diff(s.stored, wanted)
	if err != nil {
		return err
	}
	update := pendingUpdate{own: own, outcomeStatus: &wanted.Status, metadata: s.unconfirmed.Metadata, userPatches: s.patches.included}
	changes, err := s.rebase(ctx, update, false)
	if err != nil || changes.IsEmpty() {
		return err
	}
	return s.send(ctx, changes, update, conflictRuleRebase)
}

// StoreLive reads the item from the API server and passes a copy to the function `change`. If this function returns
// true, StoreLive stores the status of the copy. It returns the stored item, or nil if nothing was stored. StoreLive
// may be called while an abandoned call still uses the copies of another session.
func (s *Session) StoreLive(ctx context.Context, d contract.Decision, change func(fresh *lsv1alpha1.DeployItem) bool) (*lsv1alpha1.DeployItem, error) {
	s.decision = d
	fresh, err := s.readLive(ctx)
	if err != nil || fresh == nil {
		return nil, err
	}
	wanted := fresh.DeepCopy()
	if !change(wanted) {
		return nil, nil
	}
	changes, err := diff(fresh, withStatus(fresh, &wanted.Status, d.Revision))
	if err != nil {
		return nil, err
	}
	obj := fresh.DeepCopy()
	_, err = itempatch.Send(ctx, s.writer.options.Client, obj, changes)
	return obj, err
}

var _ itemstate.Unconfirmed = (*Session)(nil)
