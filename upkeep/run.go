// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Run is one call of a deployer for one item. Its methods are for the goroutine of the call; Ready, Wait, Read,
// Event, Value and those of the Keeper may be called from several goroutines.
type Run struct {
	*Keeper

	// Item is the item of the call.
	Item *lsv1alpha1.DeployItem
	// Owner is the item as the owner of objects.
	Owner ownership.Owner
	// Cluster is the item's own target. It is nil before Connect.
	Cluster *Cluster
	// Inventory contains the item's objects in its target, as it was noted last.
	Inventory apply.Inventory

	item       *item
	store      func(apply.Inventory) error
	taken      *wants // the triggers of this run; nil before Take
	settled    bool   // whether taken was reported, or given back
	background bool   // whether the run is not a job
	unwatched  bool   // whether a kind could not be watched

	healing sync.Mutex // guards taken while an engine runs

	lookedMu sync.Mutex
	looked   map[apply.Ref]readyAt // the states in which objects were not ready
	recheck  time.Duration         // when one of them may be ready although it does not change; 0 if none
}

// Begin begins a call for an item. inv is the inventory of its provider status. note stores an inventory there, in
// memory. The Run calls note after each call of the engine, and before each [deployerlib.Checkpoint]. Begin returns
// an error if the Landscaper cluster cannot be identified.
func (k *Keeper) Begin(ctx context.Context, di *lsv1alpha1.DeployItem, inv apply.Inventory, note func(apply.Inventory) error) (*Run, error) {
	if k.scape == nil {
		return nil, fmt.Errorf("%s: UseRuntime was not called: a deployer around this one must pass it on, see deployerlib.Unwrapper", k.name())
	}
	landscape, alias, err := k.scape.id(ctx)
	if err != nil {
		return nil, err
	}
	phase := deployerlib.StoredPhase(ctx)
	inv.Former = slices.DeleteFunc(slices.Clone(inv.Former), func(former apply.Inventory) bool { return former.Cluster == nil })
	r := &Run{Keeper: k, Item: di, Inventory: inv, item: k.items.get(di), store: note, background: phase.IsFinal()}
	r.Owner = ownership.Owner{UID: di.UID, Landscape: landscape, Namespace: di.Namespace, Name: di.Name, Alias: alias}
	r.item.begin(runID(di, r.background))
	if r.background && !r.item.waits() {
		r.item.beginAnew() // the previous background run is over, however it ended
	}
	return r, nil
}

// runID identifies a run of an item. An item that never ran has no time. The ID of a background run includes the job
// that it follows.
func runID(di *lsv1alpha1.DeployItem, background bool) string {
	began := ""
	if di.Status.LastReconcileTime != nil {
		began = di.Status.LastReconcileTime.String()
	}
	return fmt.Sprintf("%s/%s/%t", di.Status.JobID, began, background)
}

// Connect opens the item's own target. target is what the library passed to the call. Connect returns a
// [deployerlib.ConfigError] on spec.target if there is no target or if it is wrong, and otherwise the error that
// prevents the target from being reached.
func (r *Run) Connect(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return deployerlib.ConfigError("spec.target", "required: the objects need a cluster to go to")
	}
	var err error
	if r.Cluster, err = r.Keeper.Cluster(ctx, target); err != nil {
		return connectError("spec.target", err)
	}
	return r.arrive(ctx, nameOf(target, r.Item))
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

// Target opens another Target of the item's namespace, or the item's own if name is empty. path is the field that
// names the Target, for errors. The errors are those of Connect, with that path.
func (r *Run) Target(ctx context.Context, path, name string) (*Cluster, error) {
	if name == "" {
		return r.Cluster, nil
	}
	target := &lsv1alpha1.Target{}
	key := types.NamespacedName{Namespace: r.Item.Namespace, Name: name}
	if err := r.rt.Landscaper.GetClient().Get(ctx, key, target); err != nil {
		return nil, fmt.Errorf("%s: get Target %s: %w", path, key, err)
	}
	resolved, err := r.rt.Targets.Resolve(ctx, target)
	if err != nil {
		return nil, connectError(path, err)
	}
	open, err := r.Keeper.Cluster(ctx, resolved)
	return open, connectError(path, err)
}

// Options sets the options that connect an engine with the item and the watches of its target: Seen, Watch,
// Checkpoint, Applied, and Force in a thorough run (see Take). It also sets Events, MayHeal and OwnerExists if they
// are nil. Use it for your own engine or Session. Apply, AfterDeployment and Delete call it themselves.
func (r *Run) Options(o apply.Options) apply.Options { return r.optionsFor(r.Cluster, o) }

func (r *Run) optionsFor(to *Cluster, o apply.Options) apply.Options {
	o.Seen, o.Watch, o.Checkpoint, o.Applied = r.lookup(to), to.watch, r.checkpoint, r.item.appliedInRun()
	if len(r.Inventory.Former) > 0 {
		o.MaxInventory = roomFor(o.MaxInventory, r.Inventory.Former)
	}
	if to == r.Cluster && o.MayHeal == nil {
		o.MayHeal = r.mayHeal
	}
	o.Force = o.Force || r.taken != nil && r.taken.thorough
	if o.Events == nil {
		o.Events = r.tell
	}
	if o.OwnerExists == nil {
		o.OwnerExists = r.ownerExists
	}
	return o
}

// ownerExists searches the cache for an item that an object names as its owner. An item that is being deleted does
// not count, because it will soon give up its objects.
func (r *Run) ownerExists(ctx context.Context, owner ownership.Owner) bool {
	di := &lsv1alpha1.DeployItem{}
	err := r.rt.Landscaper.GetClient().Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, di)
	return err == nil && di.UID == owner.UID && di.DeletionTimestamp == nil
}

// Engine returns an engine for the item's target or another one. See Options.
func (r *Run) Engine(to *Cluster, o apply.Options) *apply.Engine {
	return apply.New(to.Client, to.RESTMapper(), r.optionsFor(to, o))
}

// checkpoint stores the inventory before any of its objects is written.
func (r *Run) checkpoint(ctx context.Context, inventory apply.Inventory) error {
	if err := r.Note(inventory); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

// Note stores an inventory in the item's status, in memory. The entries are those of the item's own cluster. What is
// known about other clusters stays as it is. Note returns the errors of Begin's note.
func (r *Run) Note(inventory apply.Inventory) error {
	inventory.Cluster, inventory.Former = r.Inventory.Cluster, r.Inventory.Former
	r.Inventory = inventory
	if len(inventory.Entries) == 0 && len(inventory.Former) == 0 {
		inventory.Cluster = nil
	}
	if len(inventory.Entries) > 0 {
		r.item.searched.Store(false)
	}
	return r.store(inventory)
}

// tell writes what happened to an object as an event of the item.
func (r *Run) tell(e apply.Event) {
	r.Event(related(e.Ref), corev1.EventTypeNormal, e.Reason, e.Ref.String()+": "+e.Message)
}

// Event writes an event about the item. related is the object that it is about, or nil. kind is Normal or Warning.
// message must not contain secret values.
func (r *Run) Event(related runtime.Object, kind, reason, message string) {
	r.event(r.Item, related, kind, reason, message)
}

// Value returns what the deployer remembers about the item under a key, and calls create if there is nothing yet. The
// value is lost with Keeper.Forget and with the process. Forget calls the value's method Forgotten() if it has one.
// Use your own type for keys, as with contexts. create must not call Value, and Forgotten must not call the Keeper.
func (r *Run) Value(key any, create func() any) any { return r.item.value(key, create) }
