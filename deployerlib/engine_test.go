// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// Engine runs a reconciler without a manager, for tests.
type Engine struct{ r *reconciler }

// Access is what an Engine works with. Items reads items as the cache would. If it is nil, Client does.
type Access struct {
	Client client.Client
	Items  func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)
	Warn   func(di *lsv1alpha1.DeployItem, reason, message string)
}

type itemsFunc func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)

func (f itemsFunc) get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	return f(ctx, key)
}

// NewEngine makes an Engine as Add makes a controller.
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
	r, err := newReconciler(access{client: a.Client, live: a.Client, items: itemsFunc(a.Items), warn: a.Warn}, args)
	if err != nil {
		return nil, err
	}
	return &Engine{r: r}, nil
}

// Reconcile is what the controller calls.
func (e *Engine) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	return e.r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
}

// Ended is the result of a pass: Result and Err are those of the inner reconcile, and Queue is what the adapter returns
// to the queue.
type Ended struct {
	Result reconcile.Result
	Err    error
	Queue  reconcile.Result
}

// Pass runs one pass past the gate and without the watchdog.
func (e *Engine) Pass(ctx context.Context, key types.NamespacedName) Ended {
	a, ctx, cancel := e.r.newAttempt(ctx, key, e.r.tracker.Get(key))
	defer cancel(nil)
	ended := e.r.run(ctx, a)
	return Ended{Result: ended.hooks, Err: ended.err, Queue: e.r.schedule(a, ended)}
}

// Event hands an update event on, as the informer does; it reports whether the item was woken.
func (e *Engine) Event(di *lsv1alpha1.DeployItem) bool { return e.Update(nil, di) }

// Update is Event with the version that the cache had before.
func (e *Engine) Update(old, di *lsv1alpha1.DeployItem) bool {
	q := &recordingQueue{}
	e.r.events.updated(old, di, q)
	return len(q.added) > 0
}

// Gone hands a delete event on.
func (e *Engine) Gone(di *lsv1alpha1.DeployItem) { e.r.events.deleted(di, &recordingQueue{}) }

// Trigger is Runtime.Trigger.
func (e *Engine) Trigger(key types.NamespacedName) { e.r.events.trigger(key) }

// Queued returns what was added to the queue, which does not run, with the priorities.
func (e *Engine) Queued() map[types.NamespacedName]int { return e.r.events.queue.early }

// Known returns the number of items that the engine tracks.
func (e *Engine) Known() int { return e.r.tracker.Len() }

// Quarantined reports whether a call of the item was abandoned and is still running.
func (e *Engine) Quarantined(key types.NamespacedName) bool {
	return e.r.tracker.Get(key).Quarantined()
}

// Wiring lists the hook types that the pipeline runs, as often as it does.
func (e *Engine) Wiring() map[extension.HookType][]string {
	wired := map[extension.HookType][]string{}
	note := func(p *phase) {
		for _, t := range p.gates {
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
		op := e.r.operation(inputs{}, action)
		note(&op)
	}
	return wired
}

// recordingQueue remembers what was added.
type recordingQueue struct {
	workQueue

	added []request
}

// Add notes a request.
func (q *recordingQueue) Add(r request) { q.added = append(q.added, r) }
