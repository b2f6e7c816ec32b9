// SPDX-License-Identifier: Apache-2.0

// Package extension lets a deployer change the reconciliation flow of deployerlib without replacing it.
//
// A hook is a function of type [ReconcileExtensionHook]. It is registered for one or more hook types, which are the
// places in the flow where it is called, in a [ReconcileExtensionHooks] that the deployer's ExtensionHooks method
// returns. A hook may have side effects, and it may return a [HookResult] that ends the reconcile, forces a run or
// requests another reconcile:
//
//	hooks := extension.ReconcileExtensionHooks{}.
//		RegisterHook(audit, extension.StartHook, extension.EndHook).
//		RegisterHook(extension.Named("wait-for-quota", quota), extension.BeforeReconcileHook)
//
// The files, in reading order: hook.go defines the types, points.go the table of where each hook type runs and what its
// result does. registry.go registers hooks, result.go merges results and execute.go runs the hooks of one type.
// decorators.go adds names, conditions and typed signatures, policy.go failure policies and timeout.go a time limit.
//
// Two rules are important. A nil result means "no opinion", and hooks without an opinion must return it. A non-nil
// result, even an empty one, means "continue". For [ShouldReconcileHook] and [DuringResponsibilityCheckHook] it
// overrides the default logic.
//
// The guide docs/hooks.md has the complete table of hook points. The subpackage continuousreconcile provides a hook
// that reconciles on a schedule.
package extension

//go:generate go run ./internal/hookdocs ../docs/hooks.md
