// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// Engine runs a reconciler for tests, without a manager.
type Engine struct{ r *reconciler }

// Access contains the clients of an Engine. The Engine reads items with Items or, if Items is nil, with Client. It
// reads from the API server with Live or, if Live is nil, with Client.
type Access struct {
	Client client.Client
	Live   client.Reader
	Items  func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)
	Warn   func(di *lsv1alpha1.DeployItem, reason, message string)
}

type itemsFunc func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)

func (f itemsFunc) get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	return f(ctx, key)
}

// NewEngine returns an Engine with a reconciler, which it creates as Add does.
func NewEngine(args DeployerArgs, a Access) (*Engine, error) {
	args.Default()
	if err := args.Validate(); err != nil {
		return nil, err
	}
	if a.Items == nil {
		a.Items = func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
			di := &lsv1alpha1.DeployItem{}
			return di, a.Client.Get(ctx, key, di)
		}
	}
	if a.Live == nil {
		a.Live = a.Client
	}
	r, err := newReconciler(access{client: a.Client, live: a.Live, items: itemsFunc(a.Items), warn: a.Warn}, args)
	if err != nil {
		return nil, err
	}
	return &Engine{r: r}, nil
}

// Reconcile calls Reconcile of the reconciler, as the controller does.
func (e *Engine) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	return e.r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
}

// AttemptResult is the result of RunAttempt. Result is the requeue that hooks requested, Err is the error of the
// attempt, and Queue is the result that the reconciler returns to the queue.
type AttemptResult struct {
	Result reconcile.Result
	Err    error
	Queue  reconcile.Result
}

// WrapRuntime returns a Runtime that reads Targets as the Engine does.
func (e *Engine) WrapRuntime(rt Runtime) Runtime {
	rt.readTarget = e.r.loader.readTarget
	return rt
}

// RunAttempt makes one attempt on an item. Unlike Reconcile, it does not check whether the attempt is too early, and
// runs without the watchdog.
func (e *Engine) RunAttempt(ctx context.Context, key types.NamespacedName) AttemptResult {
	a, ctx, cancel := e.r.newAttempt(ctx, key, e.r.tracker.Get(key))
	defer cancel(nil)
	ended := e.r.run(ctx, a)
	return AttemptResult{Result: ended.hookRequeue, Err: ended.err, Queue: e.r.scheduleNext(a, ended)}
}

// HandleEvent handles an update event without the previous version, and reports whether the item was queued.
func (e *Engine) HandleEvent(di *lsv1alpha1.DeployItem) bool { return e.HandleUpdate(nil, di) }

// HandleUpdate handles an update event as the informer would send it, and reports whether the item was queued. The
// parameter `old` is the version that the cache contained before.
func (e *Engine) HandleUpdate(old, di *lsv1alpha1.DeployItem) bool {
	q := &recordingQueue{}
	e.r.events.handleUpdate(old, di, q)
	return len(q.added) > 0
}

// HandleTargetEvent handles an event about a Target, except for the trigger of its items.
func (e *Engine) HandleTargetEvent(key types.NamespacedName) { e.r.loader.targets.forget(key) }

// HandleDelete handles a delete event.
func (e *Engine) HandleDelete(di *lsv1alpha1.DeployItem) {
	e.r.events.handleDelete(di, &recordingQueue{})
}

// Trigger does the same as Runtime.Trigger.
func (e *Engine) Trigger(key types.NamespacedName) { e.r.events.enqueueWithLowPriority(key) }

// HandleTargetUpdate handles an update event of a Target.
func (e *Engine) HandleTargetUpdate(ctx context.Context, old, t *lsv1alpha1.Target) {
	e.r.newTargetHandler().Update(ctx, event.TypedUpdateEvent[*lsv1alpha1.Target]{ObjectOld: old, ObjectNew: t}, nil)
}

// HandleContextUpdate handles an update event of a Context.
func (e *Engine) HandleContextUpdate(ctx context.Context, old, lsCtx *lsv1alpha1.Context) {
	e.r.newContextHandler().Update(ctx, event.TypedUpdateEvent[*lsv1alpha1.Context]{ObjectOld: old, ObjectNew: lsCtx}, nil)
}

// ListQueued returns the items that were added to the queue, with their priorities. The queue of an Engine never runs.
func (e *Engine) ListQueued() map[types.NamespacedName]int { return e.r.events.queue.early }

// NumItems returns the number of items that the engine tracks.
func (e *Engine) NumItems() int { return e.r.tracker.Len() }

// IsQuarantined reports whether a call of the item was abandoned and is still running.
func (e *Engine) IsQuarantined(key types.NamespacedName) bool {
	return e.r.tracker.Get(key).IsQuarantined()
}

// ListPhasesByHookType returns, for each hook type, the names of the phases that run the hooks of this type.
func (e *Engine) ListPhasesByHookType() map[extension.HookType][]string {
	wired := map[extension.HookType][]string{}
	note := func(p *phase) {
		for _, t := range p.beforeHooks {
			wired[t] = append(wired[t], p.name)
		}
		if p.override != nil {
			wired[p.override.hook] = append(wired[p.override.hook], p.name)
		}
	}
	for i := range e.r.phases {
		note(&e.r.phases[i])
	}
	for _, action := range []contract.Action{contract.ActionAbort, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionReconcile} {
		op := e.r.newActionPhase(callArgs{}, action)
		note(&op)
	}
	return wired
}

// recordingQueue records the requests that were added.
type recordingQueue struct {
	workQueue

	added []request
}

// Add records a request.
func (q *recordingQueue) Add(r request) { q.added = append(q.added, r) }
