// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/upkeep"
)

// call is one call of the deployer for one item.
type call struct {
	*deployer

	item   *lsv1alpha1.DeployItem
	run    *upkeep.Run
	status *ProviderStatus
	memory *memory
	target *inTarget
}

// begin reads what is stored about the item.
func (d *deployer) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*call, error) {
	status, err := decodeStatus(di)
	if err != nil {
		return nil, err
	}
	c := &call{deployer: d, item: di, status: status}
	if c.run, err = d.keeper.Begin(ctx, di, status.Inventory, c.note); err != nil {
		return nil, err
	}
	c.memory = memoryOf(c.run)
	return c, nil
}

// note puts an inventory into the item's status, in memory.
func (c *call) note(inventory apply.Inventory) error {
	c.status.Inventory = inventory
	return c.status.store(c.item)
}

// reconcile walks the graph once, takes away what left it, and says whether that was all.
func (c *call) reconcile(ctx context.Context) error {
	uid := c.item.UID
	c.memory.begin(c.run.Cluster, uid, func() { c.keeper.Wake(uid, time.Time{}) })
	c.memory.onReference(func() { c.keeper.Wake(uid, c.memory.nextReference(c.keeper.Runtime().Clock.Now())) })
	defer func() {
		if c.memory.end() {
			c.keeper.Wake(uid, time.Time{})
		}
	}()
	thorough, giveBack := c.run.Take()
	config, err := c.graph.configure(c.item)
	if err == nil {
		err = c.recover(ctx)
	}
	if err == nil {
		err = c.run.LeaveFirst(ctx, apply.Options{}, nil)
	}
	if err != nil {
		giveBack()
		return err
	}
	walk := c.openWalk(ctx)
	walk.config = config
	c.memory.during(func(o watch.Object) { walk.news(c.target.ownerOf(o)) }, walk.news)
	w, next := walk.walk(ctx)
	c.memory.during(nil, nil)
	c.metrics.count(w.states)
	left, err := c.removeLeft(ctx, walk, w)
	if len(left) > 0 && err == nil {
		next = shorter(next, lookAgain)
	}
	next = shorter(next, c.target.recheck)
	exportWaits, exportErr := c.export(ctx, walk, w, thorough)
	result := c.conclude(w, left, err)
	if result.err = errors.Join(result.err, exportErr); result.waits == "" {
		result.waits = exportWaits
	}
	if err := c.settle(ctx, result.err); err != nil && result.err == nil {
		result.err = err
	}
	if result.err != nil {
		giveBack()
	}
	return c.next(ctx, result, next, thorough)
}

// openWalk prepares a walk. The objects of a target are held until settle: what a watch sees meanwhile is judged then.
func (c *call) openWalk(ctx context.Context) *run {
	var target client.Client
	if c.run.Cluster != nil {
		c.run.Hold()
		target = c.run.Cluster.Client
	}
	c.target = newInTarget(c.run, c.graph, c.status, c.memory)
	return newRun(c.graph, c.item.DeepCopy(), c.target, target, logf.FromContext(ctx), c.options.Parallel)
}

// settle stores what the call came to, and watches what is there now.
func (c *call) settle(ctx context.Context, failure error) error {
	c.status.ObservedGeneration = c.item.Generation
	if c.run.Cluster == nil {
		return c.note(c.target.inventory())
	}
	objects := c.target.objects()
	if c.memory.keep(objects); len(objects) > 0 {
		c.run.Cluster.Keep(c.item.UID) // or else nobody listens; a cluster that was just closed is opened by the next run
	}
	owned := apply.Report{Owned: c.target.applier.Report().Owned}
	err := c.run.Settle(ctx, c.target.inventory(), owned, failure)
	if failure != nil {
		return nil // it is told already
	}
	return err
}

// next says when the item comes back.
func (c *call) next(ctx context.Context, r result, next time.Duration, thorough bool) error {
	if next > 0 && (r.err != nil || r.waits == "") {
		c.wakeIn(c.item.UID, next)
	}
	switch {
	case r.err != nil:
		if r.moving {
			c.item.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing // the library stores it beside the error
		}
		return r.err
	case r.waits != "":
		return deployerlib.WaitFor(r.waits, shorter(next, c.run.Poll()))
	}
	cleaned, err := c.run.CleanUp(ctx, apply.Options{}, nil)
	if err != nil {
		return err
	}
	c.run.Finished()
	if done := c.target.done(); done == 0 && !thorough && !cleaned {
		return deployerlib.ErrUnchanged
	}
	return nil
}
