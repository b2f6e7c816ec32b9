// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	"github.com/deployerkit/deployerkit/contract"
)

// isPaused tells that the item carries the pause annotation.
func (c *cycle) isPaused() bool { return contract.IsPaused(c.stored) }

// checkPause ends the pass of an item on which the pause holds back whatever is
// wanted, before anybody is asked what else could be. The event of the
// annotation's removal wakes the item.
func (r *reconciler) checkPause(_ context.Context, c *cycle) (verdict, error) {
	d := r.look(c)
	if !d.Paused {
		return proceed, nil
	}
	c.decision = d
	c.state.ClearAbort()
	r.markPaused(c)
	return stop, nil
}

// markPaused shows in memory that a pause holds something back, or is over.
func (r *reconciler) markPaused(c *cycle) {
	if contract.PauseMarked(c.item, c.decision) {
		return
	}
	c.own()
	contract.MarkPaused(c.item, c.decision, c.began)
	c.protect()
}
