// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	"github.com/google/uuid"

	"github.com/deployerkit/deployerkit/contract"
)

// evaluate asks the contract what is due. A start is applied in memory, so
// that the hooks that follow see it; operate stores it.
func (r *reconciler) evaluate(_ context.Context, c *cycle) (verdict, error) {
	r.decide(c)
	return proceed, nil
}

// decide is evaluate without a phase around it.
func (r *reconciler) decide(c *cycle) {
	c.decision = r.look(c)
	r.markPaused(c)
	if c.decision.Action != contract.Abort {
		c.state.ClearAbort()
	}
	if c.decision.Due {
		c.own()
		r.start(c)
	}
}

// look asks the contract about the item as the pass has it.
func (r *reconciler) look(c *cycle) contract.Decision {
	return contract.Evaluate(c.item, contract.Options{Revision: r.args.Revision, Now: r.args.Clock.Now()})
}

// start applies the start of a new run in memory.
func (r *reconciler) start(c *cycle) {
	if c.decision.New {
		contract.Start(c.item, c.decision, r.startInfo(c))
	}
	c.protect()
	c.run.Track(c.work())
	if !c.decision.Expired {
		r.limit(c)
	}
}

// startInfo says who starts, when, and under which new job ID if one is needed.
func (r *reconciler) startInfo(c *cycle) contract.StartInfo {
	info := contract.StartInfo{Now: c.began, Deployer: r.args.info()}
	if c.decision.NewJob {
		info.JobID = uuid.NewString()
	}
	return info
}
