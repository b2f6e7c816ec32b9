// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// newPipeline returns the phases of one reconcile, in order. After the phases, conclude judges the attempt and writes
// its outcome.
func (r *reconciler) newPipeline() []phase {
	return []phase{
		{name: "start", beforeHooks: hookTypes(extension.StartHook)},
		{name: "fetch", do: r.fetch},
		{name: "responsibility", do: r.checkResponsibility, override: &override{extension.DuringResponsibilityCheckHook, replaceVerdict, nil}, onProceed: markResponsible},
		{name: "pause", isNeeded: isPaused, do: r.checkPause},
		{name: "contract", beforeHooks: hookTypes(extension.AfterResponsibilityCheckHook), do: r.checkContract},
		{name: "should-reconcile", do: shouldReconcile, override: &override{extension.ShouldReconcileHook, allowForce, r.startForcedRun}},
		{name: "operate", do: r.runAction},
		{name: "end", beforeHooks: hookTypes(extension.EndHook)},
	}
}

// newActionPhase returns the phase of an action. In each attempt, the phase `operate` runs exactly one of these phases.
func (r *reconciler) newActionPhase(in callArgs, action contract.Action) phase {
	d := r.args.Deployer
	return map[contract.Action]phase{
		contract.ActionAbort:          {name: "abort", beforeHooks: hookTypes(extension.BeforeAnyReconcileHook, extension.BeforeAbortHook), do: r.newActionStep(d.Abort, in)},
		contract.ActionForceReconcile: {name: "force-reconcile", beforeHooks: hookTypes(extension.BeforeAnyReconcileHook, extension.BeforeForceReconcileHook), do: r.newActionStep(newForceReconcile(d), in)},
		contract.ActionDelete:         {name: "delete", beforeHooks: hookTypes(extension.BeforeAnyReconcileHook, extension.BeforeDeleteHook), do: r.newActionStep(d.Delete, in)},
		contract.ActionReconcile:      {name: "reconcile", beforeHooks: hookTypes(extension.BeforeAnyReconcileHook, extension.BeforeReconcileHook), do: r.newActionStep(d.Reconcile, in)},
	}[action]
}
