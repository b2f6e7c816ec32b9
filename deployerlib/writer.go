// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/patch"
)

const (
	maxRebases   = 5                // rebases of one write after conflicts
	writeTimeout = 30 * time.Second // bounds one write with its rebases
)

// errConflict ends a pass whose start met a foreign change: the next one sees it.
var errConflict = errors.New("the item changed while its run was being started")

// writer is the only code that writes deploy items. Every write carries the
// resourceVersion that it is based on.
type writer struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	seen   *observer
}

// conflictRule says what a write does when it met a foreign change.
type conflictRule int

const (
	onConflictGiveUp conflictRule = iota // the pass ends, the next one decides anew
	onConflictRebase                     // carried over while the run is still ours
)

// store writes a status, the intent and the running patch in at most two
// calls. It tells whether anything had to be written.
func (w *writer) store(ctx context.Context, c *cycle, status *lsv1alpha1.DeployItemStatus, intent metaIntent, rule conflictRule) (bool, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	wish := wish{intent: intent, users: c.running.take()}
	if intent.isEmpty() && len(wish.users) == 0 && equality.Semantic.DeepEqual(&c.base.Status, status) {
		return false, nil
	}
	own := wantedItem(c.base, status, c.decision.Revision)
	intent.apply(own, c.stored)
	wanted, err := withPatches(c, own, wish.users)
	if err != nil {
		return false, err
	}
	changes, err := itempatch.Diff(c.base, wanted)
	if c.outcome != nil {
		wish.told = &own.Status
	}
	if wish.own = changes; err == nil && len(wish.users) > 0 {
		wish.own, err = itempatch.Diff(c.base, own)
	}
	if err != nil {
		return false, fmt.Errorf("compare deploy item: %w", err)
	}
	if changes.Empty() {
		c.running.stored()
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	c.state.ExpectWrite(itemstate.DigestOf(half(c.base, wanted)), itemstate.DigestOf(wanted))
	before := c.base
	if err = w.send(ctx, c, changes, wish, rule); err == nil && c.base != before && len(wish.users) > 0 {
		c.absorb()
	}
	return true, err
}

// send sends the changes and, as the rule allows, carries them over to newer
// versions of the item.
func (w *writer) send(ctx context.Context, c *cycle, changes itempatch.Changes, wish wish, rule conflictRule) error {
	for range maxRebases {
		left, err := w.sendOnce(ctx, c, changes)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			c.running.stored()
			return nil
		case !apierrors.IsConflict(err):
			return c.refused(err)
		case rule == onConflictGiveUp:
			c.meetForeign()
			return errConflict
		}
		toldStatus := changes.Status != nil && left.Status == nil
		if changes, err = w.rebase(ctx, c, wish, toldStatus); err != nil {
			return err
		}
		if changes.Empty() {
			c.running.stored()
			return nil
		}
	}
	return &writeError{err: fmt.Errorf("gave up after %d conflicts in a row", maxRebases)}
}

// sendOnce sends and takes over the response.
func (w *writer) sendOnce(ctx context.Context, c *cycle, changes itempatch.Changes) (itempatch.Changes, error) {
	obj := &lsv1alpha1.DeployItem{}
	obj.Namespace, obj.Name = c.key.Namespace, c.key.Name
	w.seen.writes(c, changes)
	left, err := itempatch.Send(ctx, w.client, obj, changes)
	if obj.ResourceVersion != "" {
		w.adopt(c, obj)
	}
	return left, err
}

// adopt makes a response the new base.
func (w *writer) adopt(c *cycle, obj *lsv1alpha1.DeployItem) {
	obj.ManagedFields = nil
	c.state.Wrote(obj)
	c.base = obj
	obj.ObjectMeta.DeepCopyInto(&c.item.ObjectMeta)
}

// absorb takes over into the working copy what the running patch made of the
// stored status. Phase and error are what the deployer set in memory, and a
// provider status that is the same stays the same object.
func (c *cycle) absorb() {
	mine := c.item.Status
	c.base.Status.DeepCopyInto(&c.item.Status)
	c.item.Status.Phase, c.item.Status.LastError = mine.Phase, mine.LastError
	if sameJSON(mine.ProviderStatus, c.item.Status.ProviderStatus) {
		c.item.Status.ProviderStatus = mine.ProviderStatus
	}
}

// rebase reads the item anew and makes the wish of it, without the status if
// that is stored already, while the run is still ours. Otherwise only what the
// deployer made known about the target is kept: losing it could lose track of
// deployed objects.
func (w *writer) rebase(ctx context.Context, c *cycle, wish wish, toldStatus bool) (itempatch.Changes, error) {
	c.meetForeign()
	mine := c.base
	fresh, err := w.read(ctx, c)
	if err != nil || fresh == nil {
		return itempatch.Changes{}, err
	}
	wanted, err := wish.on(c, fresh)
	if err != nil {
		return itempatch.Changes{}, err
	}
	if toldStatus {
		wanted.Status = fresh.Status
	}
	changes, err := itempatch.Diff(fresh, wanted)
	if err != nil {
		return itempatch.Changes{}, fmt.Errorf("carry changes over: %w", err)
	}
	if changes.Status != nil && !contract.SameRun(fresh, mine, c.decision) {
		return itempatch.Changes{}, w.keep(ctx, c, fresh)
	}
	c.base = fresh
	return changes, nil
}

// read gets the item from the API server; nil when it is gone or another one.
// An answer that is older than what the pass knows is an error: it would tell
// that the run is not ours, or that the item is gone, and neither is true.
func (w *writer) read(ctx context.Context, c *cycle) (*lsv1alpha1.DeployItem, error) {
	fresh := &lsv1alpha1.DeployItem{}
	w.seen.apiCall(callGet)
	err := w.live.Get(ctx, c.key, fresh)
	if err == nil && !c.state.ConfirmRead(fresh.ResourceVersion, w.clock.Now(), c.stored.ResourceVersion, c.base.ResourceVersion) {
		return nil, &writeError{err: fmt.Errorf("the API server answered with version %s of the item, which is an old one", fresh.ResourceVersion)}
	}
	if apierrors.IsNotFound(err) || err == nil && fresh.UID != c.stored.UID {
		c.state.Released(c.stored.UID)
		return nil, nil
	}
	if err != nil {
		return nil, &writeError{err: err}
	}
	fresh.ManagedFields = nil
	return fresh, nil
}

// probe asks the API server which version of the item is the newest.
func (w *writer) probe(ctx context.Context, c *cycle) error {
	fresh := &lsv1alpha1.DeployItem{}
	w.seen.apiCall(callGet)
	if err := w.live.Get(ctx, c.key, fresh); err != nil {
		return err
	}
	c.state.ConfirmRead(fresh.ResourceVersion, w.clock.Now())
	return nil
}

// keep stores provider status and export reference alone. The run is not ours
// any more, so everything else is dropped.
func (w *writer) keep(ctx context.Context, c *cycle, fresh *lsv1alpha1.DeployItem) error {
	kept := fresh.Status.DeepCopy()
	kept.ProviderStatus = c.item.Status.ProviderStatus
	kept.ExportReference = c.item.Status.ExportReference
	changes, err := itempatch.Diff(fresh, wantedItem(fresh, kept, c.decision.Revision))
	if err != nil || changes.Empty() {
		return errors.Join(errSuperseded, err)
	}
	if _, err := w.sendOnce(ctx, c, changes); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return c.refused(err)
	}
	return errSuperseded
}

// errSuperseded tells the flow that the run is not ours any more.
var errSuperseded = fmt.Errorf("deployerlib: %w", ErrSuperseded)

// fence asks the API server whether the pass works on the stored version.
func (w *writer) fence(ctx context.Context, c *cycle) error {
	obj := c.base.DeepCopy()
	w.seen.apiCall(callFence)
	err := itempatch.Fence(ctx, w.client, obj)
	if apierrors.IsConflict(err) {
		c.state.Unclaim()
		return errConflict
	}
	if err != nil {
		c.state.Unclaim()
		return c.refused(err)
	}
	return nil
}

// checkpoint stores progress in mid-call: never phase, errors or job fields.
func (w *writer) checkpoint(ctx context.Context, c *cycle) error {
	status := c.item.Status.DeepCopy()
	guard.Protect(c.protected, status)
	if err := contract.CheckProviderStatus(status.ProviderStatus); err != nil {
		return err
	}
	status.Phase, status.LastError = c.base.Status.Phase, c.base.Status.LastError
	_, err := w.store(ctx, c, status, metaIntent{}, onConflictRebase)
	if patch.Permanent(err) { // trying again is no help, and nothing of what was to be noted exists yet
		return &contract.Fault{
			Operation: "Checkpoint", Reason: reasonTooLarge, Err: err, Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
		}
	}
	return err
}

// reasonTooLarge is the reason of an error about an item that the API server cannot store.
const reasonTooLarge = "StatusTooLarge"

// writeError is a write that the API server did not confirm. It is never
// recorded in the item's status.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// refused is the error of a write. What refused it may have quoted the item,
// and with it the secrets of its configuration.
func (c *cycle) refused(err error) *writeError {
	if emptyConfig(c.stored) {
		return &writeError{err: err}
	}
	return &writeError{err: quiet(err, c.stored.Spec.Configuration.Raw)}
}

// isKnownRefusal tells that the API server understood the write and said no.
func isKnownRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || patch.Permanent(err)
}

// removeAll lists annotation keys once each.
func removeAll(lists ...[]string) []string {
	keys := slices.Concat(lists...)
	slices.Sort(keys)
	return slices.Compact(keys)
}
