// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// HookResult is a hook's opinion on how the reconcile continues. A nil *HookResult means "no opinion".
//
// The zero value means "continue". For [ShouldReconcileHook] and [DuringResponsibilityCheckHook] it overrides the
// default logic.
type HookResult struct {
	// ReconcileResult is merged into the result of the reconcile unless there is an error. It requests another
	// reconcile, immediately (Requeue) or after a delay (RequeueAfter).
	ReconcileResult reconcile.Result

	// AbortReconcile ends the reconcile after the hooks of this type. [Points] describes its effect for each hook type.
	AbortReconcile bool
}

// AggregateHookResults merges results into one:
//
//   - If all results are nil, or there are none, it returns nil.
//   - If exactly one is not nil, it returns an unchanged copy, even if both Requeue and RequeueAfter are set.
//   - Otherwise AbortReconcile and Requeue are combined with OR. RequeueAfter is the smallest that is greater than
//     zero, or zero if Requeue is set. Priority is the highest that is set.
//
// It does not change the arguments, and the returned value shares nothing with them. With at least two non-nil results,
// order and nesting do not matter.
func AggregateHookResults(results ...*HookResult) *HookResult {
	return aggregate(results, MergeAny)
}

// AggregateHookResultsWithInvertedAbortPriority merges like [AggregateHookResults], except that AbortReconcile of the
// non-nil results is combined with AND: one result that continues is enough. It is used for
// [DuringResponsibilityCheckHook] and [ShouldReconcileHook], for which AbortReconcile=false enforces continuation.
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

// merger merges results one by one, so that a result is copied before the next hook can change it. It allocates nothing
// while all results are nil.
type merger struct {
	rule  Merge
	count int // number of non-nil results
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

// shortest returns the smaller of the durations that are greater than zero, or zero if there is none.
func shortest(a, b time.Duration) time.Duration {
	a, b = max(a, 0), max(b, 0)
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// highest returns a copy of the higher priority. A nil priority is lower than any other.
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
