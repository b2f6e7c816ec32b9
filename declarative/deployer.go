// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/upkeep"
)

// New returns a deployer for a handler. The given hooks run in addition to the deployer's own. deployerlib.Add reports
// faults of the options. Most callers use [Args].
func New(handler Handler, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	o.Default()
	d := &deployer{
		handler: handler, options: o, stability: newStability(), memories: newMemories(nil), observers: map[*upkeep.Cluster]*observer{},
		keeper: upkeep.New(upkeep.Options{
			Name: o.Name, Targets: o.Targets, TargetLimits: o.TargetLimits, WrapTransport: o.WrapTransport, Fights: o.Fights,
			CleanUpFirst: o.CleanUpFirst,
		}),
	}
	d.finalizer, _ = handler.(Finalizer)
	d.hooks = d.keeper.Hooks(nil)
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// Backoff is the backoff of declarative deployers. It starts at 100 ms and grows to 10 min.
var Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}

// Args returns what [deployerlib.Add] needs to run a handler for the deploy items of a type. The caller may change the
// result. Add reports faults of the options and hooks.
func Args(name string, t lsv1alpha1.DeployItemType, handler Handler, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	o.Name = name
	return deployerlib.DeployerArgs{Name: name, Type: t, Deployer: New(handler, o, hooks...), Backoff: Backoff}
}

// deployer runs a handler.
type deployer struct {
	deployerlib.Base

	handler   Handler
	finalizer Finalizer // nil if the handler has none
	options   Options
	hooks     extension.ReconcileExtensionHooks
	keeper    *upkeep.Keeper
	stability *stability
	memories  *memories
	metrics   *metrics
	informers atomic.Int32

	mu        sync.Mutex
	observers map[*upkeep.Cluster]*observer
}

var (
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime checks the options and prepares what needs the manager.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if d.handler == nil {
		return errors.New("handler: required")
	}
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("options of %s: %w", d.options.Name, err)
	}
	d.memories = newMemories(rt.Landscaper.GetClient())
	d.memories.forgotten = d.stability.forget
	d.metrics = newMetrics(rt.Registerer, &d.informers, d.memories, d.options.ItemMetrics)
	if err := d.keeper.UseRuntime(rt); err != nil {
		return err
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("%s: the Landscaper cluster is %T, not a manager", d.options.Name, rt.Landscaper)
	}
	return mgr.Add(d.metrics)
}

// Reconcile calls the handler and applies its response.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	r.memory.began(d.now())
	r.wished = r.memory.takeWish()
	r.up.Take() // later changes start another run
	if err := r.connect(ctx, target); err != nil {
		return r.failed(err)
	}
	return r.sync(ctx)
}

// ForceReconcile does the same as Reconcile, but does not assume that anything is unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.keeper.Thorough(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete lets the handler clean up, and deletes the children.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	r.memory.began(d.now())
	r.up.Take() // otherwise later changes would not start a run
	if d.finalizer != nil && !r.status.finalized() {
		if err := r.connect(ctx, target); err != nil {
			return err
		}
		if err := r.finalize(ctx); err != nil {
			return err
		}
	}
	if !d.options.OrphanChildren {
		if err := r.deleteChildren(ctx, target); err != nil {
			return err
		}
	}
	if err := deployerlib.DeleteExport(ctx, d.keeper.Secrets(), di); err != nil {
		return err
	}
	d.forget(di.UID)
	return nil
}

// deleteChildren deletes all children. It looks for them by label if the inventory was lost.
func (r *run) deleteChildren(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target != nil && r.up.LostInventory() {
		if err := r.recover(ctx, target); err != nil {
			return err
		}
	}
	if len(r.up.Inventory.Entries)+len(r.up.Inventory.Former) == 0 {
		return nil
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	return r.up.Delete(ctx, apply.Options{}, nil, 0)
}

// resumeSpread is the time over which a new process spreads the first calls for its items.
const resumeSpread = 5 * time.Second

// Resume observes the children of a finished item again, and calls its handler soon, because the children may have
// changed while no deployer was running, and the handler may be a new version. If nothing changed, it makes no request
// to the target.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil || target == nil {
		return err
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	if err := r.up.Resume(ctx, target); err != nil {
		return err
	}
	if _, err := r.look(ctx); err != nil {
		return err
	}
	d.wake(r.memory, d.now().Add(spread(di.UID, resumeSpread)))
	return nil
}

// spread returns a time below a bound. It is always the same for an item.
func spread(uid types.UID, bound time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum32()) % bound
}

// changed triggers a run of a child's item, not sooner than MinInterval after its last call. It never blocks.
func (d *deployer) changed(item types.UID) {
	if m := d.memories.find(item); m != nil {
		d.wake(m, m.next(d.options.MinInterval))
	}
}

// wake requests a run of an item.
func (d *deployer) wake(m *memory, notBefore time.Time) {
	m.wish()
	d.keeper.Wake(m.uid, notBefore)
}

// forget drops what is known about an item.
func (d *deployer) forget(item types.UID) {
	d.keeper.Forget(item)
	d.memories.forget(item)
}

func (d *deployer) now() time.Time { return d.keeper.Runtime().Clock.Now() }
