// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// HookResult is a hook's opinion on how the reconcile continues. A nil *HookResult means "no opinion".
//
// The zero value means "continue". For [ShouldReconcileHook] and [DuringResponsibilityCheckHook], a zero value also
// overrides the default logic.
type HookResult struct {
	// ReconcileResult requests another reconcile, immediately (Requeue) or after a delay (RequeueAfter). It is merged
	// into the result of the reconcile unless there is an error.
	ReconcileResult reconcile.Result

	// AbortReconcile ends the reconcile after all hooks of the same hook type have been called. [AllHookPoints] describes
	// its effect for each hook type.
	AbortReconcile bool
}

// AggregateHookResults merges results into one:
//
//   - If all results are nil, or there are none, it returns nil.
//   - If exactly one result is not nil, it returns an unchanged copy of that result, even if both Requeue and
//     RequeueAfter are set.
//   - Otherwise, AbortReconcile and Requeue are combined with OR. RequeueAfter is the smallest value that is greater
//     than zero, or zero if Requeue is set. Priority is the highest value that is set.
//
// It does not change the arguments, and the returned value shares no memory with them. If at least two results are not
// nil, the merged result does not depend on the order of the results. It also does not matter whether the results are
// merged in one call or step by step.
func AggregateHookResults(results ...*HookResult) *HookResult {
	return aggregate(results, MergeRuleAny)
}

// AggregateHookResultsWithInvertedAbortPriority merges results like [AggregateHookResults], except that it combines
// AbortReconcile of the non-nil results with AND: if one non-nil result continues, the merged result continues. It is
// used for [DuringResponsibilityCheckHook] and [ShouldReconcileHook].
func AggregateHookResultsWithInvertedAbortPriority(results ...*HookResult) *HookResult {
	return aggregate(results, MergeRuleAll)
}

func aggregate(results []*HookResult, rule MergeRule) *HookResult {
	m := merger{rule: rule}
	for _, r := range results {
		m.add(r)
	}
	return m.result()
}

// merger merges results one by one, and copies each result before the next hook can change it. It allocates no memory
// as long as all results are nil.
type merger struct {
	rule  MergeRule
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
		m.sum.ReconcileResult.Priority = maxPriority(nil, r.ReconcileResult.Priority)
		return
	}
	if m.rule == MergeRuleAll {
		m.sum.AbortReconcile = m.sum.AbortReconcile && r.AbortReconcile
	} else {
		m.sum.AbortReconcile = m.sum.AbortReconcile || r.AbortReconcile
	}
	sum := &m.sum.ReconcileResult
	sum.Requeue = sum.Requeue || r.ReconcileResult.Requeue //nolint:staticcheck // SA1019: the rules of merging are about this field.
	sum.RequeueAfter = minPositive(sum.RequeueAfter, r.ReconcileResult.RequeueAfter)
	sum.Priority = maxPriority(sum.Priority, r.ReconcileResult.Priority)
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

// minPositive returns the smaller of two durations, but ignores durations that are not greater than zero. If it ignores
// both, it returns zero.
func minPositive(a, b time.Duration) time.Duration {
	a, b = max(a, 0), max(b, 0)
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// maxPriority returns a copy of the higher priority. A nil priority is lower than any other.
func maxPriority(a, b *int) *int {
	if b == nil {
		return a
	}
	if a != nil && *a >= *b {
		return a
	}
	p := *b
	return &p
}
