// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/extension"
)

// cycle is all that one pass over one item knows. Each field is set by the
// phase named beside it and read by those after it.
type cycle struct {
	key   types.NamespacedName
	state *itemstate.Item
	run   *itemstate.Attempt
	log   logr.Logger
	began time.Time

	stored    *lsv1alpha1.DeployItem       // fetch: as the cache has it, shared, never changed
	base      *lsv1alpha1.DeployItem       // fetch: as the API server has it; moves on with each write
	item      *lsv1alpha1.DeployItem       // fetch: the working copy that hooks and deployer get
	protected *lsv1alpha1.DeployItemStatus // contract, operate: what user code must not change

	target    *lsv1alpha1.Target         // responsibility: nil when the item names none or it is missing
	targetErr error                      // responsibility: why it could not be read
	resolved  *lsv1alpha1.ResolvedTarget // operate
	lsCtx     *lsv1alpha1.Context        // operate

	ours     bool              // responsibility: passed, so the status may be written
	decision contract.Decision // contract
	started  bool              // operate: the start is stored
	called   bool              // operate: a deployer call was made
	returned contract.Return   // operate: what the call came back with

	unchanged bool // operate: the call said that there is nothing to tell

	outcome *contract.Outcome // operate: what the action came to
	wait    time.Duration     // operate: when to come back after a wait or poll
	news    *lsv1alpha1.Error // conclude: the error that an event may tell of
	cause   error             // operate: why the running call was cancelled

	requeue *extension.HookResult // merge of all hook results so far; abort is not kept

	running    runningPatch                // what user code notes for the item
	checkpoint func(context.Context) error // stores progress in mid-call
	writes     sync.Mutex                  // Checkpoint against the flow
	rebased    bool                        // a write met a foreign change
}

// accept notes that the item is ours: from now on its status may be written.
func (c *cycle) accept() { c.ours = true }

// writable tells whether the pass may write to the item.
func (c *cycle) writable() bool { return c.ours && c.base != nil }

// merge adds a hook result to the running one.
func (c *cycle) merge(res *extension.HookResult) {
	if res == nil {
		return
	}
	c.requeue = extension.AggregateHookResults(c.requeue, res)
	c.requeue.AbortReconcile = false
}

// own makes the working copy, once.
func (c *cycle) own() {
	if c.item == c.stored {
		c.item = c.stored.DeepCopy()
	}
}

// protect remembers what user code must not change.
func (c *cycle) protect() { c.protected = c.item.Status.DeepCopy() }

// work is what the reconcile works on now. Once its start is stored, the run is not new any more.
func (c *cycle) work() itemstate.Work {
	w := itemstate.Work{Item: c.base, Decision: c.decision}
	w.Decision.New = w.Decision.New && !c.started
	return w
}

// meetForeign notes that a write met a change by somebody else: the next pass has to look at it.
func (c *cycle) meetForeign() {
	c.rebased = true
	c.state.MetForeign()
}

type cycleKey struct{}

// cycleFrom finds the running pass in the context of a deployer call.
func cycleFrom(ctx context.Context) *cycle {
	c, _ := ctx.Value(cycleKey{}).(*cycle)
	return c
}
