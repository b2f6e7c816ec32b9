// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// HookResult is a hook's opinion on how the pass goes on. A nil *HookResult is no opinion.
//
// The zero value is an opinion, "continue": for [ShouldReconcileHook] and [DuringResponsibilityCheckHook] it forces
// what the default logic had refused.
type HookResult struct {
	// ReconcileResult is merged into what the pass returns if no error occurs: it asks for the item to be reconciled
	// again, at once (Requeue) or after a time (RequeueAfter).
	ReconcileResult reconcile.Result

	// AbortReconcile ends the pass after the hooks of this type. [Points] says what it does at each hook type.
	AbortReconcile bool
}

// AggregateHookResults merges results into one. The rules:
//
//   - all nil (or none): nil.
//   - exactly one that is not nil: a copy of it, unchanged, even where Requeue and RequeueAfter are both set.
//   - otherwise: AbortReconcile and Requeue are ORed, RequeueAfter is the smallest that is greater than zero, or zero
//     if Requeue is set, and Priority is the highest that is set.
//
// The arguments are not changed, and nothing is shared with the value returned. Order and nesting do not matter once
// two results are not nil.
func AggregateHookResults(results ...*HookResult) *HookResult {
	return aggregate(results, MergeAny)
}

// AggregateHookResultsWithInvertedAbortPriority merges like [AggregateHookResults], but ANDs AbortReconcile over the
// results that are not nil: one that wants to continue wins. It is the rule of [DuringResponsibilityCheckHook] and
// [ShouldReconcileHook], for which AbortReconcile=false enforces continuation.
func AggregateHookResultsWithInvertedAbortPriority(results ...*HookResult) *HookResult {
	return aggregate(results, MergeAll)
}

func aggregate(results []*HookResult, rule Merge) *HookResult {
	m := merger{rule: rule}
	for _, r := range results {
		m.add(r)
	}
	return m.result()
}

// merger folds results one by one, so that a result is copied before the next hook can change it, and nothing is
// allocated as long as all are nil.
type merger struct {
	rule  Merge
	count int // of results that are not nil
	sum   HookResult
}

func (m *merger) add(r *HookResult) {
	if r == nil {
		return
	}
	m.count++
	if m.count == 1 {
		m.sum = *r
		m.sum.ReconcileResult.Priority = highest(nil, r.ReconcileResult.Priority)
		return
	}
	if m.rule == MergeAll {
		m.sum.AbortReconcile = m.sum.AbortReconcile && r.AbortReconcile
	} else {
		m.sum.AbortReconcile = m.sum.AbortReconcile || r.AbortReconcile
	}
	sum := &m.sum.ReconcileResult
	sum.Requeue = sum.Requeue || r.ReconcileResult.Requeue //nolint:staticcheck // SA1019: the rules of merging are about this field.
	sum.RequeueAfter = shortest(sum.RequeueAfter, r.ReconcileResult.RequeueAfter)
	sum.Priority = highest(sum.Priority, r.ReconcileResult.Priority)
}

func (m *merger) result() *HookResult {
	if m.count == 0 {
		return nil
	}
	r := m.sum
	if m.count > 1 && r.ReconcileResult.Requeue { //nolint:staticcheck // SA1019: as above.
		r.ReconcileResult.RequeueAfter = 0
	}
	return &r
}

// shortest returns the smaller of the two that are greater than zero, zero if none is.
func shortest(a, b time.Duration) time.Duration {
	a, b = max(a, 0), max(b, 0)
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// highest returns a copy of the higher priority; nil is no priority.
func highest(a, b *int) *int {
	if b == nil {
		return a
	}
	if a != nil && *a >= *b {
		return a
	}
	p := *b
	return &p
}
