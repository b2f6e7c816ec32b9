// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// HookCall is one call of a hook of a Recorder.
type HookCall struct {
	// Hook is the name given to Recorder.Hook.
	Hook string
	// Type is the hook type that the hook was called for.
	Type extension.HookType
	// Item and Target are what it was given, copied; nil if it got none.
	Item   *lsv1alpha1.DeployItem
	Target *lsv1alpha1.Target
}

// Script is what a hook of a Recorder returns for a hook type. It may change
// the item, as a hook may.
type Script func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) (*extension.HookResult, error)

// Recorder gives hooks that record how they were called. The zero value is
// ready; it is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	calls   []HookCall
	scripts map[string]map[extension.HookType]Script
}

// Hook returns a hook that records its calls under a name and has no opinion,
// unless On says otherwise.
func (r *Recorder) Hook(name string) extension.ReconcileExtensionHook {
	return func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		r.mu.Lock()
		r.calls = append(r.calls, HookCall{Hook: name, Type: t, Item: di.DeepCopy(), Target: target.DeepCopy()})
		script := r.scripts[name][t]
		r.mu.Unlock()
		if script == nil {
			return nil, nil
		}
		return script(ctx, di, target)
	}
}

// On scripts what the hook with that name does at a hook type, from now on. If script is nil, the hook has no opinion.
func (r *Recorder) On(name string, t extension.HookType, script Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scripts == nil {
		r.scripts = map[string]map[extension.HookType]Script{}
	}
	if r.scripts[name] == nil {
		r.scripts[name] = map[extension.HookType]Script{}
	}
	r.scripts[name][t] = script
}

// Returns is a Script with a fixed result.
func Returns(result *extension.HookResult, err error) Script {
	return func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
		return result, err
	}
}

// Calls returns what was recorded so far, in order.
func (r *Recorder) Calls() []HookCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]HookCall(nil), r.calls...)
}

// Types returns the hook types recorded so far, in order.
func (r *Recorder) Types() []extension.HookType {
	types := []extension.HookType{}
	for _, call := range r.Calls() {
		types = append(types, call.Type)
	}
	return types
}

// Forget empties the record.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}
