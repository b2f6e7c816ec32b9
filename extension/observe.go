// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync/atomic"
	"time"
)

// Call describes one finished call of a hook for an [Observer].
type Call struct {
	// Type and Index identify the hook: it is number Index of its type, counted from 0.
	Type  HookType
	Index int
	// Name is the name set by [Named], or "<Type>[<Index>]".
	Name string
	// Result is what the hook returned, or nil if it returned an error. It is the hook's own object and must not be
	// changed.
	Result *HookResult
	// Err is the error of the hook, without the prefix that ExecuteHooks adds.
	Err error
	// Duration is the duration of the call. It is zero if the observer has no clock.
	Duration time.Duration
}

// Observer observes every hook call, for metrics and traces.
type Observer struct {
	// Now returns the current time. If it is nil, calls are not timed.
	Now func() time.Time
	// Done is called after each hook, in the goroutine that runs the hooks, with the context given to ExecuteHooks. If
	// it is nil, the observer has no effect.
	Done func(ctx context.Context, c Call)
}

type observerKey struct{}

// WithObserver returns a context in which ExecuteHooks reports each hook call to o, which replaces an observer in ctx.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type recordKey struct{}

// record is the context that hooks are called with. It returns the name of the running hook, which only the decorator
// Named knows. It is itself a context, so that ExecuteHooks needs only one allocation.
type record struct {
	context.Context

	name atomic.Pointer[string] // atomic, because a hook that exceeds its time limit may still write it
}

// Value returns the record itself for its key, and the value of the outer context for any other key.
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
