// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// HookType says where in the reconciliation flow a hook is called. [Points] describes each of them.
type HookType string

// The hook types in the order of the flow. Of the four types from BeforeAbortHook to BeforeReconcileHook exactly one
// is called in a pass that runs an action.
const (
	// StartHook runs at the very beginning of a pass, before the item is read: item and target are always nil.
	StartHook HookType = "Start"
	// DuringResponsibilityCheckHook runs after the default responsibility check, and a result replaces its verdict.
	// A result that is not nil and does not abort makes the deployer responsible: use with great care.
	DuringResponsibilityCheckHook HookType = "DuringResponsibilityCheck"
	// AfterResponsibilityCheckHook runs once the deployer is known to be responsible; nothing has been changed yet.
	AfterResponsibilityCheckHook HookType = "AfterResponsibilityCheck"
	// ShouldReconcileHook runs after the contract said whether a run is due. A result that is not nil and does not
	// abort forces a run; a run that is due cannot be stopped here.
	ShouldReconcileHook HookType = "ShouldReconcile"
	// BeforeAnyReconcileHook runs before whichever of the four actions.
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

// ReconcileExtensionHook is called when the flow reaches a hook type that it is registered for; the last argument
// says which. The item is nil for [StartHook] and set otherwise; the target is nil when the item names none, when it
// cannot be found, and for StartHook. Item and target belong to the pass: do not keep them after returning. The
// status may be changed in memory and is written by the library; changes to the spec are refused, to the metadata
// dropped. A nil result is "no opinion". With an error the result is ignored and the pass ends.
type ReconcileExtensionHook func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, HookType) (*HookResult, error)

// ReconcileExtensionHookSetup couples a hook with the types it is written for, so that who registers it need not know.
type ReconcileExtensionHookSetup struct {
	// Hook is the function; nil is reported by [ReconcileExtensionHooks.Validate].
	Hook ReconcileExtensionHook
	// HookTypes are the places where it is called. Empty: it is called nowhere.
	HookTypes []HookType
}
