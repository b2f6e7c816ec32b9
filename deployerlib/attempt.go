// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"strings"
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
	"github.com/deployerkit/deployerkit/internal/runningcall"
)

// attempt is one reconcile of one item. It contains the objects that all phases use, and the results of the phases.
// Each result is set by one phase and read by later phases.
type attempt struct {
	key      types.NamespacedName
	log      logr.Logger
	began    time.Time
	state    *itemstate.Item
	inflight *itemstate.Attempt
	record   *history.Recording // nil if no history is recorded
	calls    *calls.Counter

	session     *statuswriter.Session // set by phase `fetch`; nil until the item was read
	since       time.Time             // set by phase `responsibility`: the Target and the Context must not be older; zero if the cache is good enough
	target      foundTarget           // set by phase `responsibility`
	responsible bool                  // set by phase `responsibility`: whether the deployer may write the status
	decision    contract.Decision     // set by phase `pause` or `contract`, or by a ShouldReconcile hook; empty if the attempt ended before
	call        callResult            // set by phase `operate`

	aborts  []extension.Call // the hooks of the type that ran last whose results abort
	stopped string           // which hooks ended the attempt, for the condition Waiting; empty if none did
	pause   *pause           // set if a hook returned WaitFor

	hooks *extension.HookResult // the merged results of all hooks so far; AbortReconcile is never set
	wait  time.Duration         // delay before the next reconcile; set by phase `fetch` if the cache lags behind
}

// pause is the error of a hook that returned WaitFor.
type pause struct {
	message string // names the hook
	after   time.Duration
}

// note records the call of a hook that aborts.
func (a *attempt) note(call extension.Call) {
	if call.Result != nil && call.Result.AbortReconcile {
		a.aborts = append(a.aborts, call)
	}
}

// stoppedBy returns a text that names the hooks that stopped a run, and the reconcile that they requested.
func stoppedBy(calls []extension.Call) string {
	var names []string
	requests := &extension.HookResult{}
	for _, call := range calls {
		names = append(names, call.String())
		requests = extension.AggregateHookResults(requests, call.Result)
	}
	text := strings.Join(names, ", ") + " stopped the run and requested "
	switch res := requests.ReconcileResult; {
	case res.Requeue: //nolint:staticcheck // hooks may set it
		return text + "another reconcile immediately"
	case res.RequeueAfter > 0:
		return text + "another reconcile after " + res.RequeueAfter.String()
	}
	return text + "no other reconcile"
}

// foundTarget is the result of reading the Target of an item. The field `object` is nil if the item names no Target or
// if the Target is missing. If the Target is missing, the field `err` is set.
type foundTarget struct {
	object *lsv1alpha1.Target
	err    error
}

// newAttempt begins an attempt. The returned attempt is nil if an earlier call for the item still ignores its
// cancellation. The returned context is not cancelled together with ctx, because an attempt may continue for the grace
// period while the process shuts down.
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

// ending returns the end of an attempt that has had no effect so far.
func (a *attempt) ending() ending {
	return ending{decision: a.decision, responsible: a.responsible, wait: cmp.Or(a.wait, a.call.wait)}
}

// merge adds the result of hooks to the results of earlier hooks.
func (a *attempt) merge(res *extension.HookResult) {
	if res == nil {
		return
	}
	a.hooks = extension.AggregateHookResults(a.hooks, res)
	a.hooks.AbortReconcile = false
}

// work returns the stored version of the item and a decision about it. Once the start of the run is stored, the field New
// of the returned decision is false.
func (a *attempt) work(d contract.Decision) itemstate.Work {
	w := itemstate.Work{Item: a.session.Stored(), Decision: d}
	w.Decision.New = w.Decision.New && !a.session.Started()
	return w
}

// callFrom returns the attempt that passed ctx to the deployer, or nil if ctx does not belong to a deployer call.
func callFrom(ctx context.Context) *attempt {
	a, _ := runningcall.From(ctx).(*attempt)
	return a
}
