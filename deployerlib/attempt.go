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
	revision    contract.Revision     // set by phase `fetch`: the revision of the contract that the attempt follows
	notBefore   time.Time             // set by phase `responsibility`: the Target and the Context must not be older; zero if the cache is good enough
	target      foundTarget           // set by phase `responsibility`
	responsible bool                  // set by phase `responsibility`: whether the deployer may write the status
	evaluated   *contract.Decision    // set by phase `pause` or `contract`; nil if the attempt ended before
	handedOut   time.Time             // set with `evaluated`: when the run that is due was handed out; zero if none is due
	forced      *contract.Decision    // set by phase `should-reconcile` if a hook forces a run
	call        callResult            // set by phase `operate`

	hooks hookState     // what the hooks have requested so far
	wait  time.Duration // delay before the next reconcile; set by phase `fetch` if the cache lags behind
}

// hookState is what the hooks of an attempt have requested so far.
type hookState struct {
	result      *extension.HookResult // the merged results of all hooks; AbortReconcile is never set
	aborts      []extension.HookCall  // the hooks of the type that ran last whose results abort
	stopMessage string                // which hooks ended the attempt, for the condition Waiting; empty if none did
	wait        *hookWait             // set if a hook returned WaitFor
}

// hookWait is the error of a hook that returned WaitFor.
type hookWait struct {
	message string // names the hook
	after   time.Duration
}

// recordAbort records the call of a hook that aborts.
func (h *hookState) recordAbort(call extension.HookCall) {
	if call.Result != nil && call.Result.AbortReconcile {
		h.aborts = append(h.aborts, call)
	}
}

// merge adds the result of hooks to the results of earlier hooks.
func (h *hookState) merge(res *extension.HookResult) {
	if res == nil {
		return
	}
	h.result = extension.AggregateHookResults(h.result, res)
	h.result.AbortReconcile = false
}

// describeStop returns a text that names the hooks that stopped a run, and the reconcile that they requested.
func describeStop(calls []extension.HookCall) string {
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
		state: state, inflight: inflight, hooks: hookState{result: &extension.HookResult{}},
	}, attemptCtx, cancel
}

// isWritable reports whether the attempt may write to the item.
func (a *attempt) isWritable() bool { return a.responsible && a.session != nil }

// getDecision returns the decision on which the attempt acts: to make the run that a hook forces, or else what the
// contract requires. If the attempt ended before the contract was evaluated, nothing is due.
func (a *attempt) getDecision() contract.Decision {
	switch {
	case a.forced != nil:
		return *a.forced
	case a.evaluated != nil:
		return *a.evaluated
	}
	return contract.Decision{Revision: a.revision}
}

// newEnd returns the end of an attempt that has had no effect so far. hookDelay is the delay that a hook requested with
// WaitFor, or zero.
func (a *attempt) newEnd(d contract.Decision, hookDelay time.Duration) attemptEnd {
	return attemptEnd{
		decision: d, responsible: a.responsible, hookRequeue: a.hooks.result.ReconcileResult,
		wait: cmp.Or(hookDelay, a.wait, a.call.wait),
	}
}

// newWork returns the stored version of the item and a decision about it. Once the start of the run is stored, the
// field New of the returned decision is false.
func (a *attempt) newWork(d contract.Decision) itemstate.Work {
	w := itemstate.Work{Item: a.session.GetStored(), Decision: d}
	w.Decision.New = w.Decision.New && !a.session.IsStarted()
	return w
}

// getRunningAttempt returns the attempt that passed ctx to the deployer, or nil if ctx does not belong to a deployer
// call.
func getRunningAttempt(ctx context.Context) *attempt {
	a, _ := runningcall.From(ctx).(*attempt)
	return a
}
