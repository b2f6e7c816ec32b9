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
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// call is one call of the deployer for one item.
type call struct {
	*deployer

	item   *lsv1alpha1.DeployItem
	run    *managed.Run
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
	if c.run, err = d.manager.Begin(ctx, di, status.Inventory, c.setInventory); err != nil {
		return nil, err
	}
	c.memory = target.GetMemory(c.run)
	return c, nil
}

// setInventory writes an inventory to the status of the item in memory.
func (c *call) setInventory(inventory apply.Inventory) error {
	c.status.Inventory = inventory
	return c.status.store(c.item)
}

// reconcile walks the graph once and removes objects that are no longer desired. It returns nil if the item is
// complete.
func (c *call) reconcile(ctx context.Context) error {
	uid, manager, memory := c.item.UID, c.manager, c.memory // the closures below outlive the call, so they must not refer to c
	memory.BeginRun(c.run.Cluster, uid, func() { manager.Trigger(uid, time.Time{}) })
	memory.OnReferenceChange(func() { manager.Trigger(uid, memory.NextReferenceRun(manager.GetRuntime().Clock.Now())) })
	defer func() {
		if c.memory.CompleteRun() {
			c.manager.Trigger(uid, time.Time{})
		}
	}()
	c.run.TakeTriggers()
	config, err := c.graph.decodeConfig(c.item)
	if err == nil {
		err = c.recoverInventory(ctx)
	}
	if err == nil {
		err = c.run.CleanUpFormerFirst(ctx, apply.Options{}, nil)
	}
	if err != nil {
		c.run.ReturnTriggers()
		return err
	}
	walk := c.prepareWalk(ctx)
	walk.config = config
	c.memory.SetChangeHandlers(func(o observe.Object) { walk.requestRecheck(c.target.GetOwner(o)) }, walk.requestRecheck)
	w, next := walk.visitAll(ctx)
	c.memory.SetChangeHandlers(nil, nil)
	for _, s := range w.states {
		c.states.WithLabelValues(s.Name, string(s.State)).Inc()
	}
	left, err := c.pruneObjects(ctx, walk, w)
	if len(left) > 0 && err == nil {
		next = minDuration(next, removalRecheckInterval)
	}
	if recheck := c.target.GetRecheckAfter(); recheck > 0 {
		next = minDuration(next, max(recheck, pace.Min))
	}
	endsJob := w.isReady() && !contract.IsFinal(deployerlib.StoredPhase(ctx))
	exportWaits, exportErr := c.updateExports(ctx, walk, w, c.run.IsResyncForced() || endsJob)
	result := c.updateStatus(w, left, err)
	if result.err = errors.Join(result.err, exportErr); result.waitReason == "" {
		result.waitReason = exportWaits
	}
	if result.err = cmp.Or(result.err, c.recordResult(ctx, result.err)); result.err != nil {
		c.run.ReturnTriggers()
	}
	return c.requestNextRun(ctx, result, next, c.run.IsResyncForced())
}

// prepareWalk prepares a walk of the graph. From now on, changes that a watch reports are held back until
// `recordResult` compares them with the result of the walk.
func (c *call) prepareWalk(ctx context.Context) *run {
	var reached client.Client
	if c.run.Cluster != nil {
		c.run.Cluster.Watcher().Suspend(c.item.UID)
		reached = c.run.Cluster.Client
	}
	c.target = target.New(c.run, finalizers{c.status}, c.graph.watches)
	return newRun(c.graph, c.item.DeepCopy(), c.target, reached, logf.FromContext(ctx), c.options.Concurrency)
}

// recordResult stores the inventory, and watches the objects that exist now. It does not return failure, the error of
// the walk.
func (c *call) recordResult(ctx context.Context, failure error) error {
	c.status.ObservedGeneration = c.item.Generation
	if c.run.Cluster == nil {
		return c.setInventory(c.target.Inventory())
	}
	objects := c.target.Objects()
	if c.memory.KeepOnly(objects); len(objects) > 0 || c.memory.HasReferences() {
		c.run.Cluster.KeepOpen(c.item.UID) // keeps the watches, even if the cluster was closed during the walk
	}
	owned := apply.Report{Owned: c.target.ListOwned()}
	err := c.run.RecordResult(ctx, c.target.Inventory(), owned, failure)
	if failure != nil {
		return nil // the caller reports the error of the walk
	}
	return err
}

// requestNextRun schedules the next run of the item, and returns the error of the current run.
func (c *call) requestNextRun(ctx context.Context, r result, next time.Duration, thorough bool) error {
	if next > 0 && (r.err != nil || r.waitReason == "") {
		c.triggerAfter(c.item.UID, next)
	}
	switch {
	case r.err != nil:
		if r.progressing {
			c.item.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing // the library stores the phase together with the error
		}
		return r.err
	case r.waitReason != "":
		return deployerlib.WaitFor(r.waitReason, minDuration(next, c.run.PollInterval()))
	}
	cleaned, err := c.run.TryCleanUpFormer(ctx, apply.Options{}, nil)
	if err != nil {
		return err
	}
	c.run.Finish()
	if done := c.target.ChangedObjects(); done == 0 && !thorough && !cleaned {
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
	Apply(ctx context.Context, of unit, desired []apply.Desired) ([]apply.ApplyResult, error)
}

// reader reads from the target cluster.
type reader interface {
	// Ready returns the reason why an object is not ready, or "" if it is ready. If the function `judge` is nil, the
	// default rules decide. If `judge` has decided that a version of the object is ready, it is not called again for the
	// same version.
	Ready(ctx context.Context, ref apply.Ref, judge readinessFunc) (reason string, err error)
	// Find returns the objects that match `wanted`. The caller must not modify these objects. A later change of one of
	// them triggers a run of the item.
	Find(ctx context.Context, component string, wanted search) ([]*unstructured.Unstructured, error)
	// CheckReadiness returns the reason why an object is not ready by the default rules, or "" if it is ready. The object
	// must be a result of Find.
	CheckReadiness(ctx context.Context, live *unstructured.Unstructured) (reason string, err error)
	// Forget records that an object may have changed since this run read it.
	Forget(ref apply.Ref)
	// Get reads an object. It returns nil if the object does not exist.
	Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error)
}

// These types are the arguments of the methods of a session.
type (
	unit          = target.Unit
	claim         = target.Claim
	readinessFunc = target.ReadinessFunc
	search        = target.Search
)
