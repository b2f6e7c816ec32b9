// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/pace"
	"github.com/deployerkit/deployerkit/observe"
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

// begin reads the stored status of an item.
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

// note writes an inventory to the status of the item in memory.
func (c *call) note(inventory apply.Inventory) error {
	c.status.Inventory = inventory
	return c.status.store(c.item)
}

// reconcile walks the graph once and removes objects that are no longer desired. It returns nil if the item is complete.
func (c *call) reconcile(ctx context.Context) error {
	uid, keeper, memory := c.item.UID, c.keeper, c.memory // the closures below outlive the call, so they must not refer to c
	memory.Begin(c.run.Cluster, uid, func() { keeper.Wake(uid, time.Time{}) })
	memory.OnReference(func() { keeper.Wake(uid, memory.NextReference(keeper.Runtime().Clock.Now())) })
	defer func() {
		if c.memory.End() {
			c.keeper.Wake(uid, time.Time{})
		}
	}()
	c.run.Take()
	config, err := c.graph.configure(c.item)
	if err == nil {
		err = c.recover(ctx)
	}
	if err == nil {
		err = c.run.LeaveFirst(ctx, apply.Options{}, nil)
	}
	if err != nil {
		c.run.GiveBack()
		return err
	}
	walk := c.openWalk(ctx)
	walk.config = config
	c.memory.During(func(o observe.Object) { walk.news(c.target.OwnerOf(o)) }, walk.news)
	w, next := walk.walk(ctx)
	c.memory.During(nil, nil)
	for _, s := range w.states {
		c.states.WithLabelValues(s.Name, string(s.State)).Inc()
	}
	left, err := c.removeLeft(ctx, walk, w)
	if len(left) > 0 && err == nil {
		next = shorter(next, lookAgain)
	}
	if recheck := c.target.Recheck(); recheck > 0 {
		next = shorter(next, max(recheck, pace.Min))
	}
	endsJob := w.ready() && !contract.IsFinal(deployerlib.StoredPhase(ctx))
	exportWaits, exportErr := c.export(ctx, walk, w, c.run.Thorough() || endsJob)
	result := c.conclude(w, left, err)
	if result.err = errors.Join(result.err, exportErr); result.waits == "" {
		result.waits = exportWaits
	}
	if result.err = cmp.Or(result.err, c.settle(ctx, result.err)); result.err != nil {
		c.run.GiveBack()
	}
	return c.next(ctx, result, next, c.run.Thorough())
}

// openWalk prepares a walk of the graph. From now on, changes that a watch reports are held back until `settle`
// compares them with the result of the walk.
func (c *call) openWalk(ctx context.Context) *run {
	var reached client.Client
	if c.run.Cluster != nil {
		c.run.Cluster.Watcher().Suspend(c.item.UID)
		reached = c.run.Cluster.Client
	}
	c.target = target.New(c.run, finalizers{c.status}, c.graph.watches)
	return newRun(c.graph, c.item.DeepCopy(), c.target, reached, logf.FromContext(ctx), c.options.Parallel)
}

// settle stores the inventory, and watches the objects that exist now. The parameter `failure` is the error of the
// walk. settle does not return this error.
func (c *call) settle(ctx context.Context, failure error) error {
	c.status.ObservedGeneration = c.item.Generation
	if c.run.Cluster == nil {
		return c.note(c.target.Inventory())
	}
	objects := c.target.Objects()
	if c.memory.Keep(objects); len(objects) > 0 || c.memory.Refers() {
		c.run.Cluster.Keep(c.item.UID) // keeps the watches, even if the cluster was closed during the walk
	}
	owned := apply.Report{Owned: c.target.Owned()}
	err := c.run.Settle(ctx, c.target.Inventory(), owned, failure)
	if failure != nil {
		return nil // the caller reports the error of the walk
	}
	return err
}

// next schedules the next run of the item, and returns the error of the current run.
func (c *call) next(ctx context.Context, r result, next time.Duration, thorough bool) error {
	if next > 0 && (r.err != nil || r.waits == "") {
		c.wakeIn(c.item.UID, next)
	}
	switch {
	case r.err != nil:
		if r.moving {
			c.item.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing // the library stores the phase together with the error
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

// session provides access to the target cluster and the inventory for one run of one item. It is safe for concurrent
// use. No method waits for readiness.
type session interface {
	reader

	// Claim adds objects to the inventory before a component writes them. If the component has a Delete, Claim also
	// records in the status that Delete must be called. If this changes the status, Claim calls `foresee`, adds the
	// objects that other components will probably write, and records their Deletes. It then stores the status.
	Claim(ctx context.Context, c claim, foresee func() []claim) error
	// Apply writes those objects of one component that are not known to be up to date. The outcomes are in the order of
	// the objects in `desired`. An error that concerns one object is in the outcome of that object. Apply returns only
	// errors that concern all objects.
	Apply(ctx context.Context, of unit, desired []apply.Desired) ([]apply.Outcome, error)
}

// reader reads from the target cluster.
type reader interface {
	// Ready returns the reason why an object is not ready, or "" if it is ready. If the function `judge` is nil, the
	// default rules decide. If `judge` has decided that a version of the object is ready, it is not called again for the
	// same version.
	Ready(ctx context.Context, ref apply.Ref, judge judge) (reason string, err error)
	// Find returns the objects that match `wanted`. The caller must not modify these objects. A later change of one of
	// them triggers a run of the item.
	Find(ctx context.Context, component string, wanted search) ([]*unstructured.Unstructured, error)
	// Judge returns the reason why an object is not ready by the default rules, or "" if it is ready. The object must
	// be a result of Find.
	Judge(ctx context.Context, live *unstructured.Unstructured) (reason string, err error)
	// Changed records that an object may have changed since this run read it.
	Changed(ref apply.Ref)
	// Get reads an object. It returns nil if the object does not exist.
	Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error)
}

// These types are the arguments of the methods of a session.
type (
	unit   = target.Unit
	claim  = target.Claim
	judge  = target.Judge
	search = target.Search
)
