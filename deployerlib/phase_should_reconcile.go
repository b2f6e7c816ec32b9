// SPDX-License-Identifier: Apache-2.0

package deployerlib

import "context"

// shouldReconcile is the contract's verdict. Work that was decided to be
// skipped (updateOnChangeOnly) may still be forced by a hook.
func (r *reconciler) shouldReconcile(_ context.Context, c *cycle) (verdict, error) {
	if c.decision.Due && !c.decision.Unchanged {
		return proceed, nil
	}
	return stop, nil
}

// force turns a pass that has nothing to do into a run, because a hook asked
// for it. Where the contract forbids that, the pass ends and the hook's
// requeue is kept.
func (r *reconciler) force(_ context.Context, c *cycle) (verdict, error) {
	forced := c.decision.Force()
	if !forced.Due {
		c.log.V(1).Info("a hook asked for a run that the contract does not allow now", "reason", c.decision.Reason)
		return stop, nil
	}
	begins := forced.New && !c.decision.New
	c.decision = forced
	c.own()
	if begins || forced.Background {
		r.start(c)
	}
	return proceed, nil
}
