// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Run represents one call of a deployer for one item. Several goroutines may use the methods Judge, Wait, Event and
// Value. Use all other methods only in the goroutine in which the deployer was called.
type Run struct {
	// Keeper is the Keeper of the deployer.
	Keeper *Keeper
	// Item is the item for which the deployer was called.
	Item *lsv1alpha1.DeployItem
	// Owner identifies the item as the owner of its objects.
	Owner ownership.Owner
	// Cluster is the item's own target. It is nil until Connect is called.
	Cluster *Cluster
	// Inventory is the inventory that was last passed to Note.
	Inventory apply.Inventory

	item        *item
	store       func(apply.Inventory) error
	corrections *corrections
	guesses     guesses
	known       map[types.UID]bool // the objects in the inventory when collectUnknown or Observe was called last
	waits       bool               // an earlier call of this run waits for the objects
	background  bool               // the item's last Landscaper job had finished before the run began
	unwatched   bool               // at least one kind cannot be watched
}

// Begin returns a Run for the current call. The parameter `inv` is the inventory from the item's provider status. The
// function `note` must set an inventory in the provider status, in memory. The Run calls it after each call of the
// apply engine and before each [deployerlib.Checkpoint]. In the first call for an item whose inventory has no objects,
// Begin marks the inventory as empty and passes it to `note`. LostInventory uses this mark to detect that an item has
// no objects. Call Begin before steps that can fail, so that the mark is stored. Begin returns an error if the
// Landscaper cluster cannot be identified.
func (k *Keeper) Begin(ctx context.Context, di *lsv1alpha1.DeployItem, inv apply.Inventory, note func(apply.Inventory) error) (*Run, error) {
	if k.scape == nil {
		return nil, fmt.Errorf("%s: UseRuntime was not called: a deployer that wraps this one must forward the call, see deployerlib.Unwrapper", k.name())
	}
	landscape, alias, err := k.scape.id(ctx)
	if err != nil {
		return nil, err
	}
	phase := deployerlib.StoredPhase(ctx)
	inv.Former = slices.DeleteFunc(slices.Clone(inv.Former), func(former apply.Inventory) bool { return former.Cluster == nil })
	r := &Run{Keeper: k, Item: di, Inventory: inv, item: k.items.get(di), store: note, background: phase.IsFinal()}
	r.Owner = ownership.Owner{UID: di.UID, Landscape: landscape, Namespace: di.Namespace, Name: di.Name, Alias: alias}
	r.corrections = &corrections{item: r.item, owner: r.Owner, clusters: k.clusters}
	r.waits = !r.item.begin(runID(di, r.background)) && r.item.waits()
	if r.background && !r.item.waits() {
		r.item.beginAnew() // the previous background run has ended, with or without an error
	}
	if !deployerlib.IsFirstCall(ctx) || len(inv.Entries)+len(inv.Former) > 0 {
		return r, nil
	}
	r.Inventory.Empty = true
	return r, note(r.Inventory)
}

// runID returns the ID of a run. Calls with the same ID belong to the same run. The ID is a hash of the ID of the item's
// last job, the time of the last reconcile, and whether the run is a background run. The time is zero if the item has
// never been reconciled.
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

// Connect opens the item's own target. The parameter `target` is the argument that the library passed to the deployer.
// If `target` is nil or invalid, Connect returns a [deployerlib.ConfigError] for spec.target. It also returns an error
// if the target cannot be opened.
func (r *Run) Connect(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return deployerlib.ConfigError("spec.target", "required, because the objects are deployed to the target")
	}
	var err error
	if r.Cluster, err = r.Keeper.Cluster(ctx, target); err != nil {
		return connectError("spec.target", err)
	}
	uid, err := r.Cluster.uid(ctx, slices.ContainsFunc(r.Inventory.Former, isUnverified))
	if err != nil {
		return connectError("spec.target", err)
	}
	at := apply.Cluster{UID: uid, Target: nameOf(target, r.Item), Server: r.Cluster.server}
	from := r.Inventory.Cluster
	change, err := locate(ctx, r.Cluster, r.Inventory, at)
	if err != nil {
		return connectError("spec.target", err)
	}
	r.Inventory = change.inventory
	if !change.moved {
		return nil
	}
	r.item.beginAnew()
	r.Keeper.clusters.leave(r.Item.UID, r.Cluster)
	if len(change.released) > 0 {
		r.release(*from, len(change.released), releasedByTarget)
	}
	return r.Note(r.Inventory)
}

// nameOf returns the name of an item's own Target.
func nameOf(target *lsv1alpha1.ResolvedTarget, di *lsv1alpha1.DeployItem) string {
	switch {
	case target.Target != nil:
		return target.Name
	case di.Spec.Target != nil:
		return di.Spec.Target.Name
	}
	return ""
}

// Target opens another Target in the item's namespace. If `name` is empty, it returns the item's own target. The
// parameter `path` is the field of the configuration that names the Target. Target returns the same errors as Connect,
// but with this path instead of spec.target.
func (r *Run) Target(ctx context.Context, path, name string) (*Cluster, error) {
	if name == "" {
		return r.Cluster, nil
	}
	key := types.NamespacedName{Namespace: r.Item.Namespace, Name: name}
	target, err := r.Keeper.rt.GetTarget(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("%s: get Target %s: %w", path, key, err)
	}
	resolved, err := r.Keeper.rt.Targets.Resolve(ctx, target)
	if err != nil {
		return nil, connectError(path, err)
	}
	open, err := r.Keeper.Cluster(ctx, resolved)
	return open, connectError(path, err)
}

// Options returns the options for an engine that writes objects of the item to the given target. Use it if you create
// your own engine or Session. Apply, AfterDeployment and Delete call Options themselves. Options sets Seen, Watch,
// Checkpoint and Applied in o. In a thorough run (see Thorough), it also sets Force. It sets Events, MayHeal, FindOwner
// and LeaveUnreadable if they are nil.
func (r *Run) Options(to *Cluster, o apply.Options) apply.Options {
	o.Seen, o.Watch, o.Applied = to.watcher, to.watch, r.item.appliedInRun()
	o.Checkpoint = func(ctx context.Context, inventory apply.Inventory) error {
		if err := r.Note(inventory); err != nil {
			return err
		}
		return deployerlib.Checkpoint(ctx)
	}
	if to == r.Cluster {
		o.Seen = r.corrections.lookup(to, r.Inventory.Entries)
		if o.MayHeal == nil {
			o.MayHeal = func(d apply.Drift) bool { return r.corrections.may(to, d) }
		}
	}
	o.Force, o.Rerun = o.Force || r.corrections.causes.ForceResync, o.Rerun || r.corrections.causes.RecreateFinished
	if o.LeaveUnreadable == nil {
		o.LeaveUnreadable = r.leavesUnreadable
	}
	return r.Keeper.reporting(r.Item, o)
}

// unreadableGrace is how long a run waits for the right to read an object that is to be deleted but may not exist, and
// how long a deletion waits for a former cluster that cannot be identified. It is as long as a deletion waits for a
// missing Target.
const unreadableGrace = deployerlib.DefaultMissingTargetGrace

// leavesUnreadable reports whether the run has waited long enough for the right to read an object.
func (r *Run) leavesUnreadable(apply.Ref) bool {
	return r.item.waited("permission to read", r.Keeper.rt.Clock.Now()) >= unreadableGrace
}

// Engine returns an apply engine for the cluster. Use Run.Options to complete the options.
func (c *Cluster) Engine(o apply.Options) *apply.Engine {
	return apply.New(c.Client, c.RESTMapper(), o)
}

// Note sets an inventory in the item's status, in memory. It replaces the entries of the item's own cluster and keeps
// the entries of other clusters. Note returns the error of the function `note` that was passed to Begin.
func (r *Run) Note(inventory apply.Inventory) error {
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
	return r.store(inventory)
}

// Event writes an event about the item. If the event is about an object of the item, `related` refers to that object.
// Otherwise it is nil. The parameter `kind` is Normal or Warning. The message must not contain secret values.
func (r *Run) Event(related runtime.Object, kind, reason, message string) {
	r.Keeper.event(r.Item, related, kind, reason, message)
}

// Value returns the value that is stored for the item under a key. If there is no value yet, it stores and returns the
// result of the function `create`. As with contexts, the key should have a type of its own. The value is lost when
// Keeper.Forget is called or the process ends. If the value has a method Forgotten(), Keeper.Forget calls this method.
// The function `create` must not call Value, and Forgotten must not call the Keeper.
func (r *Run) Value(key any, create func() any) any { return r.item.values.get(key, create) }
