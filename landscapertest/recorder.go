// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// HookCall describes one call of a hook that a Recorder provides.
type HookCall struct {
	// Hook is the name that was passed to Recorder.NewHook.
	Hook string
	// Type is the hook type for which the hook was called.
	Type extension.HookType
	// Item and Target are copies of the arguments, or nil.
	Item   *lsv1alpha1.DeployItem
	Target *lsv1alpha1.Target
}

// HookAnswer determines the result of a hook that a Recorder provides. Like any hook, it may change the item.
type HookAnswer func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) (*extension.HookResult, error)

// Recorder provides hooks that record their calls. The zero value is ready to use. It is safe for concurrent use.
type Recorder struct {
	mu          sync.Mutex
	calls       []HookCall
	hookAnswers map[string]map[extension.HookType]HookAnswer
}

// NewHook returns a hook that records its calls under the given name. The hook returns nil unless SetHookAnswer sets a
// HookAnswer for it.
func (r *Recorder) NewHook(name string) extension.ReconcileExtensionHook {
	return func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		r.mu.Lock()
		r.calls = append(r.calls, HookCall{Hook: name, Type: t, Item: di.DeepCopy(), Target: target.DeepCopy()})
		answer := r.hookAnswers[name][t]
		r.mu.Unlock()
		if answer == nil {
			return nil, nil
		}
		return answer(ctx, di, target)
	}
}

// SetHookAnswer sets the answer to calls of the named hook with the given hook type. If answer is nil, these calls
// return nil.
func (r *Recorder) SetHookAnswer(name string, t extension.HookType, answer HookAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hookAnswers == nil {
		r.hookAnswers = map[string]map[extension.HookType]HookAnswer{}
	}
	if r.hookAnswers[name] == nil {
		r.hookAnswers[name] = map[extension.HookType]HookAnswer{}
	}
	r.hookAnswers[name][t] = answer
}

// ReturnResult returns a HookAnswer that always returns the given result and error.
func ReturnResult(result *extension.HookResult, err error) HookAnswer {
	return func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
		return result, err
	}
}

// Calls returns the recorded calls, in order.
func (r *Recorder) Calls() []HookCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]HookCall(nil), r.calls...)
}

// Types returns the hook types of the recorded calls, in order.
func (r *Recorder) Types() []extension.HookType {
	types := []extension.HookType{}
	for _, call := range r.Calls() {
		types = append(types, call.Type)
	}
	return types
}

// Forget removes all recorded calls.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}
