// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ReconcileExtensionHooks maps hook types to the hooks called there, in this order. A nil or empty map is a deployer
// without hooks.
//
// deployerlib reads it once, when the deployer is added to a manager, and works on a copy: what is registered later
// has no effect. The map itself is not safe for concurrent use.
type ReconcileExtensionHooks map[HookType][]ReconcileExtensionHook

// RegisterHook appends the hook to the hooks of all given types and returns the map for chaining. Without types it
// has no effect. On a nil map it returns a new one, so use what is returned. Nothing is checked here, see [Validate].
//
// [Validate]: ReconcileExtensionHooks.Validate
func (h ReconcileExtensionHooks) RegisterHook(hook ReconcileExtensionHook, hts ...HookType) ReconcileExtensionHooks {
	if h == nil && len(hts) > 0 {
		h = ReconcileExtensionHooks{}
	}
	for _, t := range hts {
		// Clip: a list that someone is walking, or that a shallow copy of the map shares, is never written to.
		h[t] = append(slices.Clip(h[t]), hook)
	}
	return h
}

// RegisterHookSetup registers the hook of a setup for its types and returns the map for chaining, see [RegisterHook].
//
// [RegisterHook]: ReconcileExtensionHooks.RegisterHook
func (h ReconcileExtensionHooks) RegisterHookSetup(hookSetup ReconcileExtensionHookSetup) ReconcileExtensionHooks {
	return h.RegisterHook(hookSetup.Hook, hookSetup.HookTypes...)
}

// Validate reports every unknown hook type and every nil hook in one error, in a fixed order. deployerlib calls it
// when the deployer is added; a nil map is valid.
func (h ReconcileExtensionHooks) Validate() error {
	var faults []error
	for _, t := range slices.Sorted(maps.Keys(h)) {
		if find(t) == nil {
			faults = append(faults, unknownType(t))
		}
		for i, hook := range h[t] {
			if hook == nil {
				faults = append(faults, fmt.Errorf("hook %s: is nil", indexed(t, i)))
			}
		}
	}
	return errors.Join(faults...)
}

// DeepCopy returns a map that later registrations in the original do not reach; nil for nil.
func (h ReconcileExtensionHooks) DeepCopy() ReconcileExtensionHooks {
	if h == nil {
		return nil
	}
	out := make(ReconcileExtensionHooks, len(h))
	for t, list := range h {
		out[t] = slices.Clone(list)
	}
	return out
}

func unknownType(t HookType) error {
	return fmt.Errorf("unknown hook type %q, want one of %q", string(t), HookTypes())
}

func indexed(t HookType, index int) string {
	return fmt.Sprintf("%s[%d]", t, index)
}
