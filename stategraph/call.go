// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
	"github.com/deployerkit/deployerkit/upkeep"
)

// call is one call of the deployer for one item.
type call struct {
	*deployer

	item   *lsv1alpha1.DeployItem
	run    *upkeep.Run
	status *ProviderStatus
	memory *target.Memory
	target *target.Session
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
	c.memory = target.MemoryOf(c.run)
	return c, nil
}

// note stores an inventory in the item's status, in memory.
func (c *call) note(inventory apply.Inventory) error {
	c.status.Inventory = inventory
	return c.status.store(c.item)
}

// reconcile walks the graph once, removes what is no longer part of it, and reports whether that completes the item.
func (c *call) reconcile(ctx context.Context) error {
	uid := c.item.UID
	c.memory.Begin(c.run.Cluster, uid, func() { c.keeper.Wake(uid, time.Time{}) })
	c.memory.OnReference(func() { c.keeper.Wake(uid, c.memory.NextReference(c.keeper.Runtime().Clock.Now())) })
	defer func() {
		if c.memory.End() {
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
	c.memory.During(func(o watch.Object) { walk.news(c.target.OwnerOf(o)) }, walk.news)
	w, next := walk.walk(ctx)
	c.memory.During(nil, nil)
	c.metrics.count(w.states)
	left, err := c.removeLeft(ctx, walk, w)
	if len(left) > 0 && err == nil {
		next = shorter(next, lookAgain)
	}
	next = shorter(next, c.target.Recheck())
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

// openWalk prepares a walk. Until settle, changes that a watch sees of a target's objects are held, and are judged
// then.
func (c *call) openWalk(ctx context.Context) *run {
	var reached client.Client
	if c.run.Cluster != nil {
		c.run.Hold()
		reached = c.run.Cluster.Client
	}
	c.target = target.New(c.run, finalizers{c.status}, c.graph.watches)
	return newRun(c.graph, c.item.DeepCopy(), c.target, reached, logf.FromContext(ctx), c.options.Parallel)
}

// settle stores the result of the call, and watches the objects that exist now.
func (c *call) settle(ctx context.Context, failure error) error {
	c.status.ObservedGeneration = c.item.Generation
	if c.run.Cluster == nil {
		return c.note(c.target.Inventory())
	}
	objects := c.target.Objects()
	if c.memory.Keep(objects); len(objects) > 0 || c.memory.Refers() {
		c.run.Cluster.Keep(c.item.UID) // otherwise its watches end; the next run opens a cluster that was just closed
	}
	owned := apply.Report{Owned: c.target.Owned()}
	err := c.run.Settle(ctx, c.target.Inventory(), owned, failure)
	if failure != nil {
		return nil // it has already been reported
	}
	return err
}

// next schedules the next run of the item and returns the error of this one.
func (c *call) next(ctx context.Context, r result, next time.Duration, thorough bool) error {
	if next > 0 && (r.err != nil || r.waits == "") {
		c.wakeIn(c.item.UID, next)
	}
	switch {
	case r.err != nil:
		if r.moving {
			c.item.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing // the library stores it together with the error
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
	if done := c.target.Done(); done == 0 && !thorough && !cleaned {
		return deployerlib.ErrUnchanged
	}
	return nil
}

// session gives a run access to the target cluster and the inventory. The deployer of the graph implements it, and one
// session serves one run of one item. It is safe for concurrent use, and none of its methods waits.
type session interface {
	writer
	reader
}

// writer changes the target cluster.
type writer interface {
	// Claim adds what a component is about to write to the inventory, and records in the status that it has something
	// to undo. If either grew, Claim stores both, together with what others will write, as far as foresee knows it.
	Claim(ctx context.Context, c claim, foresee func() []claim) error
	// Apply writes the objects of one component that are not known to be as desired. The outcomes are in the order of
	// desired. The error is only for what concerns all objects. The error of a single object is in its outcome.
	Apply(ctx context.Context, of unit, desired []apply.Desired) ([]apply.Outcome, error)
	// Delete deletes objects, by UID, and returns those that are not gone yet.
	Delete(ctx context.Context, refs []apply.Ref) ([]apply.Waiting, error)
}

// reader reads from the target cluster.
type reader interface {
	// Ready returns why an object is not ready, or "" if it is ready. If judge is nil, the default rules decide. The
	// judge is not called again for a version of the object that it found ready.
	Ready(ctx context.Context, ref apply.Ref, judge judge) (reason string, err error)
	// Find reads the objects of a reference, which must not be changed, and triggers a run of the item when they
	// change.
	Find(ctx context.Context, component string, wanted search) ([]*unstructured.Unstructured, error)
	// Judge returns why an object that Find returned is not ready by the default rules, or "" if it is ready.
	Judge(ctx context.Context, live *unstructured.Unstructured) (reason string, err error)
	// Changed records that an object may have changed since it was read in this run.
	Changed(ref apply.Ref)
	// Get reads an object. It returns nil if the object does not exist.
	Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error)
}

// These types describe what a session works on.
type (
	unit   = target.Unit
	claim  = target.Claim
	judge  = target.Judge
	search = target.Search
)
