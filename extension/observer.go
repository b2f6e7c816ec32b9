// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync/atomic"
	"time"
)

// HookCall describes one finished call of a hook for an [Observer].
type HookCall struct {
	// Type and Index identify the hook. Index is the position of the hook among the hooks of the type, counted from 0.
	Type  HookType
	Index int
	// Name is the name set by [WithName], or "<Type>[<Index>]".
	Name string
	// Result is the result of the hook, or nil if the hook returned an error. It belongs to the hook and must not be
	// changed.
	Result *HookResult
	// Err is the error of the hook, without the prefix that ExecuteHooks adds.
	Err error
	// Duration is the duration of the call. It is zero if the observer has no clock.
	Duration time.Duration
}

// String returns the name of the hook as in the errors of ExecuteHooks: "hook BeforeReconcile[0] (quota)", or "hook
// BeforeReconcile[0]" for a hook without a name.
func (c HookCall) String() string {
	position := formatHookPosition(c.Type, c.Index)
	if c.Name == "" || c.Name == position {
		return "hook " + position
	}
	return "hook " + position + " (" + c.Name + ")"
}

// Observer observes every hook call, for metrics and traces.
type Observer struct {
	// Now returns the current time. If it is nil, calls are not timed.
	Now func() time.Time
	// Done is called after each hook, in the goroutine that runs the hooks, with the context that was passed to
	// ExecuteHooks. If Done is nil, the observer has no effect.
	Done func(ctx context.Context, c HookCall)
}

type observerKey struct{}

// WithObserver returns a context in which ExecuteHooks reports each hook call to o. If ctx already contains an
// observer, o replaces it.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type recordKey struct{}

// record is the context that is passed to hooks. The decorator Named stores the name of the running hook in the record.
// The record embeds the outer context, so that ExecuteHooks needs only one allocation.
type record struct {
	context.Context

	name atomic.Pointer[string] // atomic, because a hook that exceeds its time limit may still write the name
}

// Value returns the record itself for recordKey, and the value of the outer context for any other key.
func (r *record) Value(key any) any {
	if key == (recordKey{}) {
		return r
	}
	return r.Context.Value(key)
}

func getRecord(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}
