// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

// staleRetry is how long a pass waits for the event of our own last write.
const staleRetry = time.Second

// fetch reads the item. Gone: the pass and all memory of the item end.
// Gone at the API server but still in the cache: its event ends the memory.
// Older than our own last write: the pass waits for the newer one.
func (r *reconciler) fetch(ctx context.Context, c *cycle) (verdict, error) {
	stored, err := r.items.get(ctx, c.key)
	if apierrors.IsNotFound(err) {
		r.tracker.Forget(c.key)
		return drop, nil
	}
	if err != nil {
		return stop, err
	}
	if stored.Spec.Type != r.args.Type || !r.args.ItemSelector.Matches(labelSet(stored)) {
		r.tracker.Forget(c.key)
		return drop, nil
	}
	switch r.read(ctx, c, stored) {
	case itemstate.ReadingReleased:
		return drop, nil
	case itemstate.ReadingStale, itemstate.ReadingSuspect:
		c.wait = staleRetry
		return stop, nil
	case itemstate.ReadingCurrent:
	}
	c.stored, c.base, c.item = stored, stored, stored
	c.log = c.log.WithValues("generation", stored.Generation)
	return proceed, nil
}

// read judges the version from the cache, if need be with a live read.
func (r *reconciler) read(ctx context.Context, c *cycle, cached *lsv1alpha1.DeployItem) itemstate.Reading {
	reading := c.state.Read(cached, r.args.Clock.Now())
	if reading != itemstate.ReadingSuspect {
		return reading
	}
	if err := r.writer.probe(ctx, c); err != nil {
		c.log.V(1).Info("the cache lags behind", "error", err.Error())
	}
	return c.state.Read(cached, r.args.Clock.Now())
}
