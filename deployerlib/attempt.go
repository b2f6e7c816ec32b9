// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/calls"
)

// attempt is one reconcile of one item: the handles that its phases share, and the findings of the phases. Each finding
// is set by the phase named beside it and read by later ones.
type attempt struct {
	key      types.NamespacedName
	log      logr.Logger
	began    time.Time
	state    *itemstate.Item
	inflight *itemstate.Attempt
	record   *history.Recording // nil without a history
	calls    *calls.Counter

	session     *statuswriter.Session // fetch; nil until the item was read
	target      foundTarget           // responsibility
	responsible bool                  // responsibility; the deployer is responsible, so it may write the status
	decision    contract.Decision     // contract; a ShouldReconcile hook may change it
	call        callResult            // operate

	hooks *extension.HookResult // of all hooks so far; abort is not kept
	wait  time.Duration         // fetch: the delay before the next reconcile, because the cache is older than the last write
}

// foundTarget is the Target of an item. It is nil if the item names none, and if the Target is missing, in which case
// err is set.
type foundTarget struct {
	object *lsv1alpha1.Target
	err    error
}

// newAttempt begins an attempt. It returns nil for an item in quarantine. The context outlives that of the worker,
// because an attempt ends by its own rules even if the process has to stop.
func (r *reconciler) newAttempt(ctx context.Context, key types.NamespacedName, state *itemstate.Item) (*attempt, context.Context, context.CancelCauseFunc) {
	attemptCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	inflight := state.Begin(r.args.Clock, cancel)
	if inflight == nil {
		return nil, attemptCtx, cancel
	}
	return &attempt{
		key: key, log: logf.FromContext(ctx), began: r.args.Clock.Now(),
		state: state, inflight: inflight, hooks: &extension.HookResult{},
	}, attemptCtx, cancel
}

// writable reports whether the attempt may write to the item.
func (a *attempt) writable() bool { return a.responsible && a.session != nil }

// merge adds the result of hooks to that of the attempt.
func (a *attempt) merge(res *extension.HookResult) {
	if res == nil {
		return
	}
	a.hooks = extension.AggregateHookResults(a.hooks, res)
	a.hooks.AbortReconcile = false
}

// work returns what the attempt works on now. Once its start is stored, the run is no longer new.
func (a *attempt) work() itemstate.Work {
	w := itemstate.Work{Item: a.session.Stored(), Decision: a.decision}
	w.Decision.New = w.Decision.New && !a.session.Started()
	return w
}

type callKey struct{}

// callFrom returns the attempt whose deployer call has the context, or nil.
func callFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(callKey{}).(*attempt)
	return a
}
