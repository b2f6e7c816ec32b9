// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// pipeline is the flow of one pass, in order. conclude follows it: the only
// place that writes what a pass came to.
func (r *reconciler) pipeline() []phase {
	return []phase{
		{name: "start", gates: at(extension.StartHook)},
		{name: "fetch", do: r.fetch},
		{name: "responsibility", do: r.checkResponsibility, override: &override{extension.DuringResponsibilityCheckHook, replace, nil}, then: (*cycle).accept},
		{name: "pause", only: (*cycle).isPaused, do: r.checkPause},
		{name: "contract", gates: at(extension.AfterResponsibilityCheckHook), do: r.evaluate},
		{name: "should-reconcile", do: r.shouldReconcile, override: &override{extension.ShouldReconcileHook, forceOnly, r.force}},
		{name: "operate", do: r.operate},
		{name: "end", gates: at(extension.EndHook)},
	}
}

// operations are the phases that operate picks exactly one of.
func (r *reconciler) operations() map[contract.Action]phase {
	d := r.args.Deployer
	return map[contract.Action]phase{
		contract.Abort:          {name: "abort", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeAbortHook), do: r.act(d.Abort)},
		contract.ForceReconcile: {name: "force-reconcile", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeForceReconcileHook), do: r.act(r.forceOr(d))},
		contract.Delete:         {name: "delete", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeDeleteHook), do: r.act(d.Delete)},
		contract.Reconcile:      {name: "reconcile", gates: at(extension.BeforeAnyReconcileHook, extension.BeforeReconcileHook), do: r.act(d.Reconcile)},
	}
}
