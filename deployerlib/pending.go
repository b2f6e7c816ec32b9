// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// pendingWrite is the outcome of a finished action that the API server did not
// confirm. It is kept in memory and written before anything else happens to
// the item: the deployer is not called a second time for it.
type pendingWrite struct {
	item     *lsv1alpha1.DeployItem // with the outcome
	base     *lsv1alpha1.DeployItem // what it is based on
	stored   *lsv1alpha1.DeployItem // what the pass saw
	intent   metaIntent
	users    []*patch.Patch
	decision contract.Decision
}

func (*pendingWrite) Flush(context.Context) error { return nil }

// flush writes a pending outcome onto the item as it is now. Written already
// (only the answer was lost), gone, or not ours any more: nothing is left to do.
func (r *reconciler) flush(ctx context.Context, c *cycle, p *pendingWrite) passed {
	c.stored, c.base, c.item, c.decision, c.ours, c.rebased = p.stored, p.base, p.item, p.decision, true, true
	err := r.flushChanges(ctx, c, p)
	switch {
	case err == nil || errors.Is(err, ErrSuperseded):
		return passed{again: true}
	case isKnownRefusal(err):
		return passed{err: err, failure: true}
	}
	c.state.KeepUnconfirmed(p)
	return passed{err: err, failure: true}
}

// flushChanges carries the outcome over to a fresh read and sends it.
func (r *reconciler) flushChanges(ctx context.Context, c *cycle, p *pendingWrite) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	wanted := wantedItem(p.base, &p.item.Status, p.decision.Revision)
	own, err := itempatch.Diff(p.base, wanted)
	if err != nil {
		return err
	}
	wish := wish{own: own, told: &wanted.Status, intent: p.intent, users: p.users}
	changes, err := r.writer.rebase(ctx, c, wish, false)
	if err != nil || changes.Empty() {
		return err
	}
	return r.writer.send(ctx, c, changes, wish, onConflictRebase)
}

// backoff is the wait after a number of failures in a row: doubling between
// the bounds, ±10 %.
func (b Backoff) after(failures int, jitter func(time.Duration) time.Duration) time.Duration {
	wait := b.Min
	for range failures - 1 {
		if wait *= 2; wait >= b.Max || wait <= 0 {
			wait = b.Max
			break
		}
	}
	return jitter(wait)
}
