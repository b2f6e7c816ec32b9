// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// WithTimeout limits the duration of a call of the hook to d. If d is 0 or less, there is no limit. When the time is
// over, the hook's context is cancelled and the call fails with an error that wraps [context.DeadlineExceeded]. If the
// reconcile itself is cancelled, the call fails with the cause of the cancellation.
//
// The hook runs in its own goroutine. A hook that ignores its context continues to run until it returns. If the hook
// never returns, the goroutine leaks. The hook receives copies of item and target. Changes to the copy of the item take
// effect only if the hook returns in time. Panics are recovered. Use WithName outside of WithTimeout: WithName("x",
// WithTimeout(d, hook)).
func WithTimeout(d time.Duration, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if d <= 0 || hook == nil {
		return hook
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		bounded, cancel := context.WithTimeoutCause(ctx, d, &timeoutError{limit: d})
		defer cancel()
		own := &record{Context: bounded}
		item, itsTarget := di.DeepCopy(), target.DeepCopy()
		call := runInBackground(func() (*HookResult, error) { return hook(own, log, item, itsTarget, t) })
		result, err := call.wait(bounded)
		copyName(ctx, own)
		if err != nil {
			return nil, err
		}
		if di != nil {
			*di = *item
		}
		return result, nil
	}
}

// timeoutError is the cause with which WithTimeout cancels a context.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("did not return within %s", e.limit) }

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

type hookOutcome struct {
	result *HookResult
	err    error
}

type pending chan hookOutcome

// runInBackground calls f in a goroutine. The channel is buffered, so that a late outcome does not block the goroutine.
func runInBackground(f func() (*HookResult, error)) pending {
	p := make(pending, 1)
	go func() {
		o := hookOutcome{err: errors.New("exited its goroutine without returning")} // returned if f calls runtime.Goexit, as t.FailNow does
		defer func() { p <- o }()
		o.result, o.err = recoverPanic(f)
	}()
	return p
}

// wait returns the outcome, or the cause of the context if the context is done first.
func (p pending) wait(ctx context.Context) (*HookResult, error) {
	select {
	case o := <-p:
		return o.toResult(ctx)
	case <-ctx.Done():
	}
	select {
	case o := <-p: // the call and the context have both ended
		return o.toResult(ctx)
	default:
		return nil, context.Cause(ctx)
	}
}

// toResult returns the outcome. If the hook returned the error of the context, alone or wrapped, toResult returns an
// error that wraps the cause of the context.
func (o hookOutcome) toResult(ctx context.Context) (*HookResult, error) {
	switch end := ctx.Err(); {
	case o.err == nil || end == nil || !errors.Is(o.err, end):
		return o.result, o.err
	case o.err == end: //nolint:errorlint // An error that wraps it may contain more information.
		return nil, context.Cause(ctx)
	default:
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), o.err)
	}
}

// copyName copies the name that the hook stored in its own context, if any, to the record in ctx. It does not
// overwrite a name in that record.
func copyName(ctx context.Context, own *record) {
	if outer, name := getRecord(ctx), own.name.Load(); outer != nil && name != nil {
		outer.name.CompareAndSwap(nil, name)
	}
}
