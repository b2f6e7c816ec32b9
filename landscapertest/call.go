// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Call is the log entry for one call of a Fake.
type Call struct {
	// Item, Generation and JobID identify the item and the job for which the Fake was called.
	Item       types.NamespacedName
	Generation int64
	JobID      string
	// Action is the method that was called.
	Action contract.Action
	// InitialPhase is the phase of the item that the Fake received. StoredPhase is the phase that was stored in the
	// cluster at that time.
	InitialPhase, StoredPhase lsv1alpha1.DeployItemPhase
	// HasContext and HasTarget report whether the call received a Context and a target.
	HasContext, HasTarget bool
	// Returned reports whether the call has returned. The fields below are set only after it has returned.
	Returned bool
	// Panicked reports whether the call ended with a panic.
	Panicked bool
	// Err is the error that the call returned.
	Err error
	// Cause is the context.Cause of the call's context at the time when the call returned. It is nil if the context was
	// not cancelled.
	Cause error
}

func newCall(ctx context.Context, in Input) *Call {
	return &Call{
		Item: keyOf(in.Item), Generation: in.Item.Generation, JobID: in.Item.Status.JobID, Action: in.Action,
		InitialPhase: in.Item.Status.Phase, StoredPhase: deployerlib.StoredPhase(ctx),
		HasContext: in.Context != nil, HasTarget: in.Target != nil,
	}
}

// ListCalls returns the calls for an item so far, in the order in which they began. If item is the zero value, it
// returns the calls for all items.
func (f *Fake) ListCalls(item types.NamespacedName) []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := []Call{}
	for _, call := range f.calls {
		if item == (types.NamespacedName{}) || call.Item == item {
			calls = append(calls, *call)
		}
	}
	return calls
}

// CountCalls returns the number of calls for an item that have the given action. If item is the zero value, it counts
// the calls for all items.
func (f *Fake) CountCalls(item types.NamespacedName, action contract.Action) int {
	return countCalls(f.ListCalls(item), action)
}

func countCalls(calls []Call, action contract.Action) int {
	n := 0
	for i := range calls {
		if calls[i].Action == action {
			n++
		}
	}
	return n
}

// Forget clears the log. Calls in progress continue but are no longer logged.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// OverlappingCalls describes each pair of overlapping calls for the same item. deployerlib guarantees that there are no
// such pairs. Tests with concurrency should check at the end that OverlappingCalls returns nothing.
func (f *Fake) OverlappingCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.overlaps...)
}

// WaitForCall waits until the n-th call (counted from 1) for an item with the given action has begun, and returns the
// call. It returns an error if ctx is done before that.
func (f *Fake) WaitForCall(ctx context.Context, item types.NamespacedName, action contract.Action, n int) (Call, error) {
	return f.waitFor(ctx, item, action, n, func(Call) bool { return true })
}

// WaitForReturn waits until the n-th call (counted from 1) for an item with the given action has returned, and returns
// the call. It returns an error if ctx is done before that.
func (f *Fake) WaitForReturn(ctx context.Context, item types.NamespacedName, action contract.Action, n int) (Call, error) {
	return f.waitFor(ctx, item, action, n, func(c Call) bool { return c.Returned })
}

func (f *Fake) waitFor(ctx context.Context, item types.NamespacedName, action contract.Action, n int, ok func(Call) bool) (Call, error) {
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if call, found := findCall(f.ListCalls(item), action, n); found && ok(call) {
			return call, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Call{}, fmt.Errorf("%w while waiting for call %d of %s for %s; calls so far: %d",
				context.Cause(ctx), n, action, item, f.CountCalls(item, action))
		}
	}
}

// findCall returns the n-th of the calls that have the given action.
func findCall(calls []Call, action contract.Action, n int) (Call, bool) {
	for i := range calls {
		if calls[i].Action != action {
			continue
		}
		if n--; n == 0 {
			return calls[i], true
		}
	}
	return Call{}, false
}
