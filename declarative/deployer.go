// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/internal/pace"
	"github.com/deployerkit/deployerkit/managed"
)

// New returns a deployer for a handler. The given hooks run in addition to the deployer's own hooks. New does not check
// the options: deployerlib.Add returns an error if they are invalid. Most callers use [Args] instead.
func New(handler Handler, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	o.Default()
	d := &deployer{
		handler: handler, options: o, stability: newStability(),
	}
	d.manager = managed.New(managed.Options{
		Name: o.Name, Targets: o.Targets, TargetLimits: o.TargetLimits, WrapTransport: o.WrapTransport, Fights: o.Fights,
		CleanUpFirst: o.CleanUpFirst && !o.OrphanChildren, ObjectChanged: d.handleChange,
	})
	d.finalizer, _ = handler.(Finalizer)
	d.hooks = d.manager.NewHooks(nil)
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// Backoff is the backoff that [Args] sets. The delay starts at 100 ms and grows to 10 min.
var Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}

// Args returns the arguments for [deployerlib.Add] that run a handler for the deploy items of type t. The caller may
// change them before it calls Add. Add returns an error if the options or the hooks are invalid.
func Args(name string, t lsv1alpha1.DeployItemType, handler Handler, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	o.Name = name
	return deployerlib.DeployerArgs{Name: name, Type: t, Deployer: New(handler, o, hooks...), Backoff: Backoff, MinInterval: o.MinInterval}
}

// deployer implements deployerlib.Deployer. It calls a handler and applies its response.
type deployer struct {
	deployerlib.Base

	handler   Handler
	finalizer Finalizer // nil if the handler is not a Finalizer
	options   Options
	hooks     extension.ReconcileExtensionHooks
	manager   *managed.ResourceManager
	stability *stability
	metrics   *metrics
	limit     pace.Limit // limits the durations that the options and the handler set
}

var (
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

var errNoHandler = errors.New("handler: required")

// UseRuntime checks the options and initializes the parts that depend on the manager.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if d.handler == nil {
		return errNoHandler
	}
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("options of %s: %w", d.options.Name, err)
	}
	var failedCalls func() map[types.NamespacedName]uint64
	if d.options.ItemMetrics {
		failedCalls = d.countFailedCalls
	}
	d.metrics = newMetrics(rt.Registerer, d.manager.CountWatches, failedCalls)
	if err := d.manager.UseRuntime(rt); err != nil {
		return err
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("%s: the Landscaper cluster is %T, not a manager", d.options.Name, rt.Landscaper)
	}
	d.options.Resync = d.limit.Apply(mgr.GetLogger(), "Options.Resync", d.options.Resync)
	return mgr.Add(d.metrics)
}

// IgnoresContext implements deployerlib.ContextIgnorer.
func (d *deployer) IgnoresContext() {}

// Reconcile calls the handler and applies its response.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	r.memory.recordStart(d.now())
	r.isRequested = r.memory.takeRequest(func() { r.managed.TakeTriggers() }) // changes after this call start another run
	if err := r.connect(ctx, target); err != nil {
		return r.failed(err)
	}
	return r.sync(ctx)
}

// ForceReconcile is like Reconcile, but checks all children instead of assuming that some are unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.manager.ForceResync(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete lets the handler clean up, and then deletes the children unless Options.OrphanChildren is set.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	r.memory.recordStart(d.now())
	r.managed.TakeTriggers() // changes after this call start another run
	if d.finalizer != nil && !r.status.isFinalized() {
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
	if err := deployerlib.DeleteExport(ctx, d.manager.GetSecretClient(), di); err != nil {
		return err
	}
	d.manager.Forget(di.UID)
	return nil
}

// deleteChildren deletes all children. If the inventory was lost, it finds them by their labels.
func (r *run) deleteChildren(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		r.managed.RecordUnsearchedEvent()
	}
	if target != nil && r.managed.HasLostInventory() {
		if err := r.connect(ctx, target); err != nil {
			return err
		}
		if err := r.restoreInventory(ctx); err != nil {
			return err
		}
	}
	if len(r.managed.Inventory.Entries)+len(r.managed.Inventory.Former) == 0 {
		return nil
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	return r.managed.Delete(ctx, apply.Options{}, nil, 0)
}

// maxResumeJitter is the time over which a new process spreads the first calls for its items.
const maxResumeJitter = 5 * time.Second

// Resume watches the children of a finished item again after a restart, and requests a call of the handler. While the
// deployer was not running, the children may have changed, and the handler may have been replaced by a new version. If
// nothing has changed, the requested call sends no requests to the target.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil || target == nil {
		return err
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	if _, err := r.listChildren(ctx); err != nil { // opens the watches that Resume uses
		return err
	}
	if err := r.managed.StartWatches(ctx, target); err != nil {
		return err
	}
	d.requestRun(r.memory, d.now().Add(jitterDelay(di.UID, maxResumeJitter)))
	return nil
}

// jitterDelay returns a duration that is shorter than the given bound. The duration is always the same for one item.
func jitterDelay(uid types.UID, bound time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum32()) % bound
}

// handleChange requests a run of an item because one of its children has changed. The run does not start earlier than
// MinInterval after the start of the previous run. The method never blocks.
func (d *deployer) handleChange(item types.UID) {
	if m, known := d.manager.GetValue(item, memoryKey{}).(*memory); known {
		d.requestRun(m, m.nextCall(d.options.MinInterval))
	}
}

// requestRun requests a run of an item. The run does not start before notBefore.
func (d *deployer) requestRun(m *memory, notBefore time.Time) {
	m.requestRun(func() { d.manager.Trigger(m.uid, notBefore) })
}

func (d *deployer) now() time.Time { return d.manager.GetRuntime().Clock.Now() }
