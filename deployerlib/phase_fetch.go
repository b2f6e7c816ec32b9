// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// staleRetry is how long a pass waits for the event of our own last write.
const staleRetry = time.Second

// fetch reads the item. Gone: the pass and all memory of the item end.
// Gone at the API server but still in the cache: its event ends the memory.
// Older than our own last write: the pass waits for the newer one.
func (r *reconciler) fetch(ctx context.Context, c *cycle) (verdict, error) {
	stored, err := r.items.get(ctx, c.key)
	if apierrors.IsNotFound(err) {
		r.states.forget(c.key)
		return drop, nil
	}
	if err != nil {
		return stop, err
	}
	if stored.Spec.Type != r.args.Type || !r.args.ItemSelector.Matches(labelSet(stored)) {
		r.states.forget(c.key)
		return drop, nil
	}
	if c.state.isReleased(stored.UID) {
		return drop, nil
	}
	if c.state.awaitIfStale(stored) {
		c.wait = staleRetry
		return stop, nil
	}
	c.state.identify(stored.UID)
	c.stored, c.base, c.item = stored, stored, stored
	c.log = c.log.WithValues("generation", stored.Generation)
	return proceed, nil
}
