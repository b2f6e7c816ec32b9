// SPDX-License-Identifier: Apache-2.0

// Package extension lets a deployer change the reconciliation flow of deployerlib without replacing it.
//
// A hook is a plain function, [ReconcileExtensionHook]. It is registered for one or more hook types, the places in
// the flow where it is called, in a [ReconcileExtensionHooks] that the deployer returns from its ExtensionHooks
// method. A hook may have effects of its own, and it may answer with a [HookResult] that ends the pass, forces one
// or asks for the item to be reconciled again:
//
//	hooks := extension.ReconcileExtensionHooks{}.
//		RegisterHook(audit, extension.StartHook, extension.EndHook).
//		RegisterHook(extension.Named("wait-for-quota", quota), extension.BeforeReconcileHook)
//
// The files, in reading order: hook.go has the types, points.go says as data where each hook type runs and what its
// result does, registry.go registers, result.go merges results, execute.go runs the hooks of one type,
// decorators.go adds names, conditions and typed signatures, policy.go what a failure means, timeout.go a time limit.
//
// Two rules are worth knowing before writing the first hook. A nil result means "no opinion": return it unless you
// have one. A result that is not nil, even an empty one, means "continue", which for [ShouldReconcileHook] and
// [DuringResponsibilityCheckHook] forces what the default logic had refused.
//
// The guide with the whole table of hook points is docs/hooks.md. A ready-made hook for reconciling on a schedule is
// in the subpackage continuousreconcile.
package extension

//go:generate go run ./internal/hookdocs ../docs/hooks.md
