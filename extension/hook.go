// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// HookType is a place in the reconciliation flow where hooks are called. [AllHookPoints] describes all hook types.
type HookType string

// These constants are the hook types, in the order of the flow. A reconcile that performs an action calls one of the
// four types from BeforeAbortHook to BeforeReconcileHook.
const (
	// StartHook runs at the beginning of a reconcile, before the item is read. Item and target are always nil.
	StartHook HookType = "Start"
	// DuringResponsibilityCheckHook runs after the default responsibility check. A non-nil result of the hook replaces
	// the result of that check: the deployer is responsible unless the hook's result aborts. Use it with great care.
	DuringResponsibilityCheckHook HookType = "DuringResponsibilityCheck"
	// AfterResponsibilityCheckHook runs after the check has found the deployer responsible, before anything is changed.
	AfterResponsibilityCheckHook HookType = "AfterResponsibilityCheck"
	// ShouldReconcileHook runs after the library has decided whether a run is due. A non-nil result that does not abort
	// forces a run. The hook cannot stop a run that is due.
	ShouldReconcileHook HookType = "ShouldReconcile"
	// BeforeAnyReconcileHook runs before each of the four actions Abort, ForceReconcile, Delete and Reconcile.
	BeforeAnyReconcileHook HookType = "BeforeAnyReconcile"
	// BeforeAbortHook runs directly before the deployer's Abort.
	BeforeAbortHook HookType = "BeforeAbort"
	// BeforeForceReconcileHook runs directly before the deployer's ForceReconcile.
	BeforeForceReconcileHook HookType = "BeforeForceReconcile"
	// BeforeDeleteHook runs directly before the deployer's Delete.
	BeforeDeleteHook HookType = "BeforeDelete"
	// BeforeReconcileHook runs directly before the deployer's Reconcile.
	BeforeReconcileHook HookType = "BeforeReconcile"
	// EndHook runs after an action that returned nil, before the outcome is written.
	EndHook HookType = "End"
)

// ReconcileExtensionHook is a function that the library calls at each hook type for which the function is registered.
// The last argument is the hook type. The item is nil for [StartHook] only. The target is nil for StartHook, if the
// item has no target, and if the target does not exist. Item and target are valid only during the call. The hook may
// change the item's status in memory, and the library writes the changes. A change of the spec leads to an error, and
// changes of the metadata are dropped. A nil result means "no opinion". If the hook returns an error, the result is
// ignored and the reconcile ends.
type ReconcileExtensionHook func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, HookType) (*HookResult, error)

// ReconcileExtensionHookSetup combines a hook with its hook types, so that the code that registers the hook need not
// specify the types.
type ReconcileExtensionHookSetup struct {
	// Hook is the function. [ReconcileExtensionHooks.Validate] reports a nil hook.
	Hook ReconcileExtensionHook
	// HookTypes are the types for which the hook is registered. If there are none, the hook is never called.
	HookTypes []HookType
}
