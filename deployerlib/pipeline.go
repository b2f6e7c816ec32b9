// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// pipeline returns the phases of one reconcile, in order. After the phases, conclude judges the attempt and writes its
// outcome.
func (r *reconciler) pipeline() []phase {
	return []phase{
		{name: "start", gates: at(extension.StartHook)},
		{name: "fetch", do: r.fetch},
		{name: "responsibility", do: r.checkResponsibility, override: &override{extension.DuringResponsibilityCheckHook, replace, nil}, then: markResponsible},
		{name: "pause", only: isPaused, do: r.checkPause},
		{name: "contract", gates: at(extension.AfterResponsibilityCheckHook), do: r.evaluate},
		{name: "should-reconcile", do: shouldReconcile, override: &override{extension.ShouldReconcileHook, forceOnly, r.force}},
		{name: "operate", do: r.operate},
		{name: "end", gates: at(extension.EndHook)},
	}
}

// operation returns the phase of an action. In each attempt, the phase `operate` runs exactly one of these phases.
func (r *reconciler) operation(in inputs, action contract.Action) phase {
	d := r.args.Deployer
	return map[contract.Action]phase{
		contract.ActionAbort:          {name: "abort", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeAbortHook), do: r.act(d.Abort, in)},
		contract.ActionForceReconcile: {name: "force-reconcile", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeForceReconcileHook), do: r.act(forceOr(d), in)},
		contract.ActionDelete:         {name: "delete", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeDeleteHook), do: r.act(d.Delete, in)},
		contract.ActionReconcile:      {name: "reconcile", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeReconcileHook), do: r.act(d.Reconcile, in)},
	}[action]
}
