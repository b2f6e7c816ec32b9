// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ReconcileExtensionHooks maps each hook type to its hooks, in the order in which they are called. A nil or empty map
// means that the deployer has no hooks.
//
// deployerlib copies the map when the deployer is added to a manager. Hooks that are registered later have no effect.
// The map is not safe for concurrent use.
type ReconcileExtensionHooks map[HookType][]ReconcileExtensionHook

// RegisterHook appends the hook to the hooks of all given types and returns the map for chaining. Without types, it has
// no effect. Use the returned map, because RegisterHook creates a new map if h is nil. RegisterHook does not check its
// arguments; see [Validate].
//
// [Validate]: ReconcileExtensionHooks.Validate
func (h ReconcileExtensionHooks) RegisterHook(hook ReconcileExtensionHook, hts ...HookType) ReconcileExtensionHooks {
	if h == nil && len(hts) > 0 {
		h = ReconcileExtensionHooks{}
	}
	for _, t := range hts {
		// Clip forces append to copy the list, so that a running ExecuteHooks or a shallow copy of the map does not see
		// the change.
		h[t] = append(slices.Clip(h[t]), hook)
	}
	return h
}

// RegisterHookSetup registers the hook of a setup for the types of the setup and returns the map for chaining; see
// [RegisterHook].
//
// [RegisterHook]: ReconcileExtensionHooks.RegisterHook
func (h ReconcileExtensionHooks) RegisterHookSetup(hookSetup ReconcileExtensionHookSetup) ReconcileExtensionHooks {
	return h.RegisterHook(hookSetup.Hook, hookSetup.HookTypes...)
}

// Validate returns one error that lists every unknown hook type and every nil hook, in a fixed order. deployerlib calls
// Validate when the deployer is added. A nil map is valid.
func (h ReconcileExtensionHooks) Validate() error {
	var faults []error
	for _, t := range slices.Sorted(maps.Keys(h)) {
		if findHookPoint(t) == nil {
			faults = append(faults, newUnknownTypeError(t))
		}
		for i, hook := range h[t] {
			if hook == nil {
				faults = append(faults, fmt.Errorf("hook %s: is nil", formatHookPosition(t, i)))
			}
		}
	}
	return errors.Join(faults...)
}

// DeepCopy returns a copy of h. Hooks that are registered in h later are not added to the copy. DeepCopy returns nil if
// h is nil.
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

func newUnknownTypeError(t HookType) error {
	return fmt.Errorf("unknown hook type %q, want one of %q", string(t), AllHookTypes())
}

func formatHookPosition(t HookType, index int) string {
	return fmt.Sprintf("%s[%d]", t, index)
}
