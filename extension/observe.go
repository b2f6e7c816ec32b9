// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync/atomic"
	"time"
)

// Call is one finished call of a hook, as an [Observer] sees it.
type Call struct {
	// Type and Index say which hook it was: the Index-th of its type, from 0.
	Type  HookType
	Index int
	// Name is the name given by [Named], else "<Type>[<Index>]".
	Name string
	// Result is what the hook returned, nil with an error. It is the hook's own object: do not change it.
	Result *HookResult
	// Err is the hook's own error, without the name that ExecuteHooks adds.
	Err error
	// Duration is how long the call took; zero without a clock.
	Duration time.Duration
}

// Observer observes every hook call, for metrics and traces.
type Observer struct {
	// Now is the clock that calls are measured with. If it is nil, they are not measured.
	Now func() time.Time
	// Done is called after each hook, in the goroutine that runs the hooks, with the context given to ExecuteHooks.
	// If it is nil, there is no observer.
	Done func(ctx context.Context, c Call)
}

type observerKey struct{}

// WithObserver returns a context in which ExecuteHooks reports each hook call to o. An observer in an outer context
// is replaced. Without an observer nothing is measured and names are not built.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type recordKey struct{}

// record is the context that hooks are called with. It carries back the name of the hook that runs, which only the
// decorator Named knows. It is a context, not a value in one, so that a whole ExecuteHooks needs one allocation.
type record struct {
	context.Context

	name atomic.Pointer[string] // atomic: a hook that outlives its time limit may still write
}

// Value finds the record itself; everything else is the outer context's.
func (r *record) Value(key any) any {
	if key == (recordKey{}) {
		return r
	}
	return r.Context.Value(key)
}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}
