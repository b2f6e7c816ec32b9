// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Run represents one call of a deployer for one item. Several goroutines may use the methods CheckReadiness, Wait,
// RecordEvent and GetOrCreateValue. Use all other methods only in the goroutine in which the deployer was called.
type Run struct {
	// Manager is the ResourceManager of the deployer.
	Manager *ResourceManager
	// Item is the item for which the deployer was called.
	Item *lsv1alpha1.DeployItem
	// Owner identifies the item as the owner of its objects.
	Owner ownership.Owner
	// Cluster is the item's own target. It is nil until Connect is called.
	Cluster *Cluster
	// Inventory is the inventory that was last passed to SetInventory.
	Inventory apply.Inventory

	item             *item
	storeInventory   func(apply.Inventory) error
	corrections      *corrections
	checked          sync.Map           // the keys are the references to the objects that CheckReadiness has checked
	knownObjects     map[types.UID]bool // the objects in the inventory when addUnknownObjects or WatchInventory was called last
	isWaiting        bool               // an earlier call of this run waits for the objects
	isBackground     bool               // the item's last Landscaper job had finished before the run began
	hasUnwatchedKind bool               // at least one kind cannot be watched
}

// Begin returns a Run for the current call, which begins with inv, the inventory from the item's provider status. The
// function note must set an inventory in the provider status, in memory. The Run calls it after each call of the apply
// engine and before each [deployerlib.Checkpoint]. In the first call for an item whose inventory has no objects, Begin
// marks the inventory as empty and passes it to `note`. HasLostInventory uses this mark to detect that an item has no
// objects. Call Begin before steps that can fail, so that the mark is stored. Begin returns an error if the Landscaper
// cluster cannot be identified.
func (m *ResourceManager) Begin(ctx context.Context, di *lsv1alpha1.DeployItem, inv apply.Inventory, note func(apply.Inventory) error) (*Run, error) {
	if m.landscape == nil {
		return nil, fmt.Errorf("%s: UseRuntime was not called: a deployer that wraps this one must forward the call, see deployerlib.Unwrapper", m.name())
	}
	landscape, alias, err := m.landscape.getUIDs(ctx)
	if err != nil {
		return nil, err
	}
	phase := deployerlib.StoredPhase(ctx)
	inv.Former = slices.DeleteFunc(slices.Clone(inv.Former), func(former apply.Inventory) bool { return former.Cluster == nil })
	r := &Run{Manager: m, Item: di, Inventory: inv, item: m.items.get(di), storeInventory: note, isBackground: phase.IsFinal()}
	r.Owner = ownership.Owner{UID: di.UID, Landscape: landscape, Namespace: di.Namespace, Name: di.Name, LandscapeAlias: alias}
	r.corrections = &corrections{item: r.item, owner: r.Owner, clusters: m.clusters}
	r.isWaiting = !r.item.beginCall(runID(di, r.isBackground)) && r.item.isWaiting()
	if r.isBackground && !r.item.isWaiting() {
		r.item.resetApplied() // the previous background run has ended, with or without an error
	}
	if !deployerlib.IsFirstCall(ctx) || len(inv.Entries)+len(inv.Former) > 0 {
		return r, nil
	}
	r.Inventory.Empty = true
	return r, note(r.Inventory)
}

// runID returns the ID of a run. Calls with the same ID belong to the same run. The ID is a hash of the ID of the
// item's last job, the time of the last reconcile, and whether the run is a background run. The time is zero if the
// item has never been reconciled.
func runID(di *lsv1alpha1.DeployItem, background bool) uint64 {
	run := struct {
		job        string
		began      int64
		background bool
	}{job: di.Status.JobID, background: background}
	if di.Status.LastReconcileTime != nil {
		run.began = di.Status.LastReconcileTime.UnixNano()
	}
	return maphash.Comparable(runSeed, run)
}

var runSeed = maphash.MakeSeed()

// Connect opens target, the item's own target, which the library passed to the deployer. If target is nil or invalid,
// Connect returns an error of [deployerlib.NewConfigError] for spec.target. It also returns an error if the target
// cannot be opened.
func (r *Run) Connect(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return deployerlib.NewConfigError("spec.target", "required, because the objects are deployed to the target")
	}
	var err error
	if r.Cluster, err = r.Manager.OpenCluster(ctx, target); err != nil {
		return newConnectError("spec.target", err)
	}
	uid, err := r.Cluster.uid(ctx, slices.ContainsFunc(r.Inventory.Former, isUnverified))
	if err != nil {
		return newConnectError("spec.target", err)
	}
	at := apply.ClusterID{UID: uid, Target: getTargetName(target, r.Item), Server: r.Cluster.server}
	from := r.Inventory.Cluster
	change, err := resolveRelocation(ctx, r.Cluster, r.Inventory, at)
	if err != nil {
		return newConnectError("spec.target", err)
	}
	r.Inventory = change.inventory
	if !change.moved {
		return nil
	}
	r.item.resetApplied()
	r.Manager.clusters.removeObjects(r.Item.UID, r.Cluster)
	if len(change.released) > 0 {
		r.recordReleaseEvent(*from, len(change.released), releasedByTarget)
	}
	return r.SetInventory(r.Inventory)
}

// getTargetName returns the name of an item's own Target.
func getTargetName(target *lsv1alpha1.ResolvedTarget, di *lsv1alpha1.DeployItem) string {
	switch {
	case target.Target != nil:
		return target.Name
	case di.Spec.Target != nil:
		return di.Spec.Target.Name
	}
	return ""
}

// OpenTarget opens another Target in the item's namespace. If name is empty, it returns the item's own target. The
// field path of the configuration names the Target. OpenTarget returns the same errors as Connect, but with path
// instead of spec.target.
func (r *Run) OpenTarget(ctx context.Context, path, name string) (*Cluster, error) {
	if name == "" {
		return r.Cluster, nil
	}
	key := types.NamespacedName{Namespace: r.Item.Namespace, Name: name}
	target, err := r.Manager.rt.GetTarget(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("%s: get Target %s: %w", path, key, err)
	}
	resolved, err := r.Manager.rt.Targets.Resolve(ctx, target)
	if err != nil {
		return nil, newConnectError(path, err)
	}
	open, err := r.Manager.OpenCluster(ctx, resolved)
	return open, newConnectError(path, err)
}

// CompleteOptions returns the options for an engine that writes objects of the item to the given target. Use it if you
// create your own engine or Session. Apply, AfterDeployment and Delete call CompleteOptions themselves. It sets Watched,
// Watch, Checkpoint and Applied in o. In a forced resync (see IsResyncForced), it also sets Force. It sets Events,
// CanCorrect, FindOwner and SkipUnreadable if they are nil.
func (r *Run) CompleteOptions(to *Cluster, o apply.Options) apply.Options {
	o.Watched, o.StartWatch, o.Applied = to.watcher, to.watch, r.item.getApplied()
	o.Checkpoint = func(ctx context.Context, inventory apply.Inventory) error {
		if err := r.SetInventory(inventory); err != nil {
			return err
		}
		return deployerlib.Checkpoint(ctx)
	}
	if to == r.Cluster {
		o.Watched = r.corrections.newLookup(to, r.Inventory.Entries)
		if o.CanCorrect == nil {
			o.CanCorrect = func(d apply.DriftedObject) bool { return r.corrections.isAllowed(to, d) }
		}
	}
	o.Force, o.RecreateFinished = o.Force || r.corrections.causes.ForceResync, o.RecreateFinished || r.corrections.causes.RecreateFinished
	if o.SkipUnreadable == nil {
		o.SkipUnreadable = r.shouldSkipUnreadable
	}
	return r.Manager.completeOptions(r.Item, o)
}

// unreadableGrace is how long a run waits for the right to read an object that is to be deleted but may not exist, and
// how long a deletion waits for a former cluster that cannot be identified. It is as long as a deletion waits for a
// missing Target.
const unreadableGrace = deployerlib.DefaultMissingTargetGrace

// shouldSkipUnreadable reports whether the run has waited long enough for the right to read an object.
func (r *Run) shouldSkipUnreadable(apply.Ref) bool {
	return r.item.getWaitTime("permission to read", r.Manager.rt.Clock.Now()) >= unreadableGrace
}

// NewEngine returns an apply engine for the cluster. Use Run.CompleteOptions to complete the options.
func (c *Cluster) NewEngine(o apply.Options) *apply.Engine {
	return apply.New(c.Client, c.RESTMapper(), o)
}

// SetInventory sets an inventory in the item's status, in memory. It replaces the entries of the item's own cluster and
// keeps the entries of other clusters. SetInventory returns the error of the function `note` that was passed to Begin.
func (r *Run) SetInventory(inventory apply.Inventory) error {
	inventory.Cluster, inventory.Former = r.Inventory.Cluster, r.Inventory.Former
	inventory.Empty = len(inventory.Entries) == 0 && (r.Inventory.Empty || len(r.Inventory.Entries) > 0)
	r.Inventory = inventory
	if len(inventory.Entries) == 0 && len(inventory.Former) == 0 {
		inventory.Cluster = nil
	}
	if len(inventory.Entries) > 0 {
		r.item.searched.Store(false)
		r.item.searches.Store(0)
	}
	return r.storeInventory(inventory)
}

// RecordEvent writes an event about the item. If the event is about an object of the item, related refers to that
// object. Otherwise it is nil. The kind is Normal or Warning. The message must not contain secret values.
func (r *Run) RecordEvent(related runtime.Object, kind, reason, message string) {
	r.Manager.recordEvent(r.Item, related, kind, reason, message)
}

// GetOrCreateValue returns the value that is stored for the item under a key. If there is no value yet, it stores and
// returns the result of the function `create`. As with contexts, the key should have a type of its own. The value is
// lost when ResourceManager.Forget is called or the process ends. If the value has a method Forget(),
// ResourceManager.Forget calls this method. The function create must not call GetOrCreateValue, and Forget must not
// call the ResourceManager.
func (r *Run) GetOrCreateValue(key any, create func() any) any { return r.item.values.get(key, create) }
