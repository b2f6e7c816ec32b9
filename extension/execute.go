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

// ExecuteHooks calls the hooks of one type in the order of registration and returns their merged result, which is nil
// if no hook has an opinion. AbortReconcile is combined with AND for [DuringResponsibilityCheckHook] and
// [ShouldReconcileHook], and with OR otherwise. After a hook that aborts, the remaining hooks of the same type are
// still called.
//
// ExecuteHooks stops at the first error and returns a nil result and an error with the type, index and name of the
// hook. It also returns an error for an unknown type, for a nil hook, and after a panic (see [PanicError]). It does not
// call hooks that are registered while it runs.
func (h ReconcileExtensionHooks) ExecuteHooks(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, hookType HookType) (*HookResult, error) {
	point := findHookPoint(hookType)
	if point == nil {
		return nil, newUnknownTypeError(hookType)
	}
	hooks := h[hookType] // this copy of the slice header is a snapshot, because RegisterHook never writes to an existing list
	if len(hooks) == 0 {
		return nil, nil
	}
	e := execution{item: di, target: target, hookType: hookType, log: log, record: &record{Context: ctx}}
	e.observer, _ = ctx.Value(observerKey{}).(Observer)
	results := merger{rule: point.Merge}
	for i, hook := range hooks {
		result, err := e.callHook(i, hook)
		if err != nil {
			return nil, e.failure(i, err)
		}
		results.add(result)
	}
	return results.result(), nil
}

// execution is the state that the hooks of a type share during one call of ExecuteHooks.
type execution struct {
	item     *lsv1alpha1.DeployItem
	target   *lsv1alpha1.Target
	hookType HookType
	log      logr.Logger
	record   *record // the context that is passed to all hooks
	observer Observer
}

func (e *execution) callHook(index int, hook ReconcileExtensionHook) (*HookResult, error) {
	e.record.name.Store(nil)
	if e.observer.Done == nil {
		return e.runHook(hook)
	}
	var begin, end time.Time
	if e.observer.Now != nil {
		begin = e.observer.Now()
	}
	result, err := e.runHook(hook)
	if e.observer.Now != nil {
		end = e.observer.Now()
	}
	if err != nil {
		result = nil
	}
	e.observer.Done(e.record.Context, HookCall{Type: e.hookType, Index: index, Name: e.getHookName(index), Result: result, Err: err, Duration: end.Sub(begin)})
	return result, err
}

func (e *execution) runHook(hook ReconcileExtensionHook) (*HookResult, error) {
	if hook == nil {
		return nil, errors.New("is nil")
	}
	return recoverPanic(func() (*HookResult, error) { return hook(e.record, e.log, e.item, e.target, e.hookType) })
}

func (e *execution) getHookName(index int) string {
	if name := e.record.name.Load(); name != nil {
		return *name
	}
	return formatHookPosition(e.hookType, index)
}

func (e *execution) failure(index int, err error) error {
	return fmt.Errorf("%s: %w", HookCall{Type: e.hookType, Index: index, Name: e.getHookName(index)}, err)
}
