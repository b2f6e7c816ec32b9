// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
)

// attemptEnd is the end of an attempt. The time of the next attempt, the log, the metrics and the history depend only
// on these values.
type attemptEnd struct {
	decision    contract.Decision
	responsible bool
	kind        endKind
	outcome     *contract.Outcome // the outcome of the call or the run; nil if there was none
	unchanged   bool              // the call returned ErrUnchanged
	err         error             // the error of the attempt; WaitFor is not an error
	hookRequeue reconcile.Result  // the requeue that hooks requested; empty after an error
	wait        time.Duration     // how long to wait after WaitFor, for the next poll, or for a newer version in the cache
	requeue     bool              // reconcile again immediately
	noRetry     bool              // the failure is not retried: a change of the item, a hook or a trigger leads to the next attempt
	after       itemState
}

// endKind says what the next attempt has to do.
type endKind int

const (
	endOpen       endKind = iota // a wait or a run continues
	endSucceeded                 // nothing is left to do
	endFailed                    // the attempt counts as a failure for the backoff
	endSuperseded                // the item changed; the event of the newer version follows
)

// withError returns the end of an attempt that failed with err. The requeue that hooks requested is lost.
func (e attemptEnd) withError(err error) attemptEnd {
	e.hookRequeue, e.err, e.kind = reconcile.Result{}, err, endFailed
	return e
}

// withSuperseded returns the end of an attempt whose item was changed in the meantime.
func (e attemptEnd) withSuperseded() attemptEnd {
	e.hookRequeue, e.kind = reconcile.Result{}, endSuperseded
	return e
}

// withSuccess returns the end of an attempt without an error. If the attempt waits, it is still open.
func (e attemptEnd) withSuccess() attemptEnd {
	if e.wait == 0 {
		e.kind = endSucceeded
	}
	return e
}

// itemState is the state of an item and its run after an attempt. It is empty if the attempt did not read the item.
type itemState struct {
	item         *lsv1alpha1.DeployItem // the item as it is stored now; nil if the attempt did not read it
	current      bool                   // no change by another client was detected
	nextDecision contract.Decision      // what is now due for the item; set if a run ended
	triggerDelay time.Duration          // how long no trigger starts another background run
	// backoff is the rest of the backoff of the last call, if a background run missed its deadline during this backoff.
	// The attempt that ends the run then makes no call, and does not delay the next one.
	backoff time.Duration

	abortDeadline  time.Time // the time after which a failing Abort is not retried; zero for every other action
	targetDeadline time.Time // the time until which a deletion waits for its missing Target; zero if it does not wait
}

// getItemState returns the state of the item and its run after an attempt.
func (r *reconciler) getItemState(a *attempt, e attemptEnd) (s itemState) {
	if a.session == nil {
		return e.after
	}
	now := r.args.Clock.Now()
	s.item, s.current = a.session.GetStored(), !a.session.IsStale()
	if e.hasEndedRun() {
		s.nextDecision = r.evaluateContract(s.item)
	}
	if e.decision.Action == contract.ActionAbort {
		s.abortDeadline = a.state.GetAbortDeadline(a.session.GetOriginal(), now)
	}
	if rest, waits := r.loader.getTargetGracePeriod(a, e.decision, s.item); waits {
		s.targetDeadline = now.Add(rest)
	}
	if a.call.called {
		s.triggerDelay = max(a.state.RecordCall(a.began, r.args.MinInterval, e.decision.Background).Sub(now), 0)
	} else if e.decision.Background && e.decision.Expired {
		s.backoff = max(a.inflight.GetEarliestStart().Sub(now), 0)
	}
	return s
}
