// SPDX-License-Identifier: Apache-2.0

// Package extension lets a deployer change the reconciliation flow of deployerlib without replacing it.
//
// A hook is a function of type [ReconcileExtensionHook]. A hook type is a place in the flow where hooks are called. A
// deployer registers each hook for one or more hook types in a [ReconcileExtensionHooks], which the ExtensionHooks
// method of the deployer returns. A hook may have side effects, and it may return a [HookResult] that ends the
// reconcile, forces a run or requests another reconcile:
//
//	hooks := extension.ReconcileExtensionHooks{}.
//		RegisterHook(audit, extension.StartHook, extension.EndHook).
//		RegisterHook(extension.WithName("wait-for-quota", quota), extension.BeforeReconcileHook)
//
// Read the files in this order: hook.go defines the types, and hookpoints.go contains a table that describes when each
// hook type runs and which effect its result has. registry.go registers hooks, result.go merges results, and execute.go
// runs the hooks of one type. decorators.go adds names, conditions and typed signatures to hooks, policy.go adds
// failure policies, and timeout.go adds time limits.
//
// Two rules are important. A nil result means "no opinion"; a hook without an opinion must return nil. A non-nil result
// that does not abort means "continue", even if it is an empty HookResult. For [ShouldReconcileHook] and
// [DuringResponsibilityCheckHook], such a result overrides the default logic.
//
// The guide docs/hooks.md contains the complete table of hook points. The subpackage continuousreconcile provides a
// hook that reconciles on a schedule.
package extension

//go:generate go run ./internal/hookdocs ../docs/hooks.md
