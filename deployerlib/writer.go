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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
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
	seen   *observer
}

// conflictRule says what a write does when it met a foreign change.
type conflictRule int

const (
	onConflictGiveUp conflictRule = iota // the pass ends, the next one decides anew
	onConflictRebase                     // carried over while the run is still ours
)

// metaIntent is what the flow wants of the metadata, independent of what else is there.
type metaIntent struct {
	addFinalizer      bool
	removeFinalizer   bool
	removeAnnotations []string
}

// apply carries the intent out on di. Annotations go only while they have the
// value that the pass acted on.
func (m metaIntent) apply(di, seen *lsv1alpha1.DeployItem) {
	if m.addFinalizer {
		controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	if m.removeFinalizer {
		controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	for _, key := range m.removeAnnotations {
		if value, ok := di.Annotations[key]; ok && value == seen.Annotations[key] {
			delete(di.Annotations, key)
		}
	}
}

// isEmpty tells that nothing is wanted.
func (m metaIntent) isEmpty() bool {
	return !m.addFinalizer && !m.removeFinalizer && len(m.removeAnnotations) == 0
}

// store writes a status and the intent in at most two calls. It tells whether
// anything had to be written.
func (w *writer) store(ctx context.Context, c *cycle, status *lsv1alpha1.DeployItemStatus, intent metaIntent, rule conflictRule) (bool, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	if intent.isEmpty() && equality.Semantic.DeepEqual(&c.base.Status, status) {
		return false, nil
	}
	wanted := wantedItem(c.base, status, c.decision.Revision)
	intent.apply(wanted, c.stored)
	changes, err := patch.Diff(c.base, wanted)
	if err != nil {
		return false, fmt.Errorf("compare deploy item: %w", err)
	}
	if changes.Empty() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	c.state.expect(printOf(half(c.base, wanted)), printOf(wanted))
	err = w.send(ctx, c, changes, intent, rule)
	return true, err
}

// half is the item between the two calls of a write: the status is there, the metadata is not.
func half(base, wanted *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: base.ObjectMeta, Status: wanted.Status}
}

// wantedItem is base with another status: what the revision does not allow is
// taken back, sizes are bounded, and a provider status that would poison the
// object is never written (a stored one is removed).
func wantedItem(base *lsv1alpha1.DeployItem, status *lsv1alpha1.DeployItemStatus, revision contract.Revision) *lsv1alpha1.DeployItem {
	wanted := base.DeepCopy()
	status.DeepCopyInto(&wanted.Status)
	contract.Mask(revision, &base.Status, &wanted.Status)
	contract.Bound(&wanted.Status)
	if contract.CheckProviderStatus(wanted.Status.ProviderStatus) != nil {
		wanted.Status.ProviderStatus = nil
	}
	return wanted
}

// send sends the changes and, as the rule allows, carries them over to newer
// versions of the item.
func (w *writer) send(ctx context.Context, c *cycle, changes patch.Changes, intent metaIntent, rule conflictRule) error {
	for range maxRebases {
		left, err := w.sendOnce(ctx, c, changes)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return &writeError{err: err}
		case rule == onConflictGiveUp:
			c.meetForeign()
			return errConflict
		}
		if changes, err = w.rebase(ctx, c, left, intent); err != nil || changes.Empty() {
			return err
		}
	}
	return &writeError{err: fmt.Errorf("gave up after %d conflicts in a row", maxRebases)}
}

// sendOnce sends and takes over the response.
func (w *writer) sendOnce(ctx context.Context, c *cycle, changes patch.Changes) (patch.Changes, error) {
	obj := &lsv1alpha1.DeployItem{}
	obj.Namespace, obj.Name = c.key.Namespace, c.key.Name
	w.seen.writes(c, changes)
	left, err := patch.Send(ctx, w.client, obj, changes, patch.StatusFirst)
	if obj.ResourceVersion != "" {
		w.adopt(c, obj)
	}
	return left, err
}

// adopt makes a response the new base.
func (w *writer) adopt(c *cycle, obj *lsv1alpha1.DeployItem) {
	obj.ManagedFields = nil
	c.state.wrote(obj.ResourceVersion)
	if obj.DeletionTimestamp != nil && len(obj.Finalizers) == 0 {
		c.state.release(obj.UID)
	}
	c.base = obj
	obj.ObjectMeta.DeepCopyInto(&c.item.ObjectMeta)
}

// rebase reads the item anew and carries over what is left, while the run is
// still ours. Otherwise only what the deployer made known about the target is
// kept: losing it could lose track of deployed objects.
func (w *writer) rebase(ctx context.Context, c *cycle, left patch.Changes, intent metaIntent) (patch.Changes, error) {
	c.meetForeign()
	mine := c.base
	fresh, err := w.read(ctx, c)
	if err != nil || fresh == nil {
		return patch.Changes{}, err
	}
	rebased, err := left.Rebase(fresh)
	if err != nil {
		return patch.Changes{}, fmt.Errorf("carry changes over: %w", err)
	}
	if rebased.Status != nil && !contract.SameRun(fresh, mine, c.decision) {
		return patch.Changes{}, w.keep(ctx, c, fresh)
	}
	c.base = fresh
	meta := fresh.DeepCopy()
	intent.apply(meta, c.stored)
	metaChanges, err := patch.Diff(fresh, meta)
	if err != nil {
		return patch.Changes{}, err
	}
	rebased.Metadata = metaChanges.Metadata
	return rebased, nil
}

// read gets the item from the API server; nil when it is gone or another one.
func (w *writer) read(ctx context.Context, c *cycle) (*lsv1alpha1.DeployItem, error) {
	fresh := &lsv1alpha1.DeployItem{}
	w.seen.apiCall(callGet)
	err := w.live.Get(ctx, c.key, fresh)
	if apierrors.IsNotFound(err) || err == nil && fresh.UID != c.stored.UID {
		if c.state != nil {
			c.state.release(c.stored.UID)
		}
		return nil, nil
	}
	if err != nil {
		return nil, &writeError{err: err}
	}
	fresh.ManagedFields = nil
	if c.state != nil {
		c.state.wrote(fresh.ResourceVersion) // a cache that is older than this must not be acted on
	}
	return fresh, nil
}

// keep stores provider status and export reference alone. The run is not ours
// any more, so everything else is dropped.
func (w *writer) keep(ctx context.Context, c *cycle, fresh *lsv1alpha1.DeployItem) error {
	kept := fresh.Status.DeepCopy()
	kept.ProviderStatus = c.item.Status.ProviderStatus
	kept.ExportReference = c.item.Status.ExportReference
	changes, err := patch.Diff(fresh, wantedItem(fresh, kept, c.decision.Revision))
	if err != nil || changes.Empty() {
		return errors.Join(errSuperseded, err)
	}
	if _, err := w.sendOnce(ctx, c, changes); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return &writeError{err: err}
	}
	return errSuperseded
}

// errSuperseded tells the flow that the run is not ours any more.
var errSuperseded = fmt.Errorf("deployerlib: %w", ErrSuperseded)

// fence asks the API server whether the pass works on the stored version.
func (w *writer) fence(ctx context.Context, c *cycle) error {
	obj := c.base.DeepCopy()
	w.seen.apiCall(callFence)
	err := patch.Fence(ctx, w.client, obj)
	if apierrors.IsConflict(err) {
		c.state.unclaim()
		return errConflict
	}
	if err != nil {
		c.state.unclaim()
		return &writeError{err: err}
	}
	return nil
}

// checkpoint stores progress in mid-call: never phase, errors or job fields.
func (w *writer) checkpoint(ctx context.Context, c *cycle) error {
	status := c.item.Status.DeepCopy()
	contract.Protect(c.protected, status, c.decision.Revision)
	if err := contract.CheckProviderStatus(status.ProviderStatus); err != nil {
		return err
	}
	status.Phase, status.LastError = c.base.Status.Phase, c.base.Status.LastError
	_, err := w.store(ctx, c, status, metaIntent{}, onConflictRebase)
	return err
}

// writeError is a write that the API server did not confirm. It is never
// recorded in the item's status.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

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
