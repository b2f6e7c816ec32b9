// SPDX-License-Identifier: Apache-2.0

package extension

import "fmt"

// MergeRule is the rule that combines the AbortReconcile fields of several results of one hook type.
type MergeRule string

const (
	// MergeRuleAny means that the merged result aborts if at least one result aborts.
	MergeRuleAny MergeRule = "any"
	// MergeRuleAll means that the merged result aborts if all non-nil results abort.
	MergeRuleAll MergeRule = "all"
)

// HookPoint describes a hook type: where its hooks run, their arguments, the effects of their merged result, and the
// effect of an error. The table in docs/hooks.md is generated from the points, and a test of deployerlib checks that
// each hook type is called at its point.
type HookPoint struct {
	// Type is the hook type.
	Type HookType
	// Phase is the phase of deployerlib's flow that calls the hook: start, responsibility, contract, should-reconcile,
	// operate or end.
	Phase string
	// When describes at which moment of a reconcile the hook is called, and how often.
	When string
	// Item and Target describe the arguments, each as "nil", "set" or "may be nil".
	Item, Target string
	// Merge is the rule that combines the AbortReconcile fields of several results.
	Merge MergeRule
	// OnAbort describes the effect of a merged result with AbortReconcile=true.
	OnAbort string
	// OnContinue describes the effect of a non-nil result that does not abort. This includes an empty result.
	OnContinue string
	// OnError describes the effect of an error that the hook returns. After an error, the reconcile always ends and
	// returns an empty result.
	OnError string
	// Caution describes risks of using the hook. It is "" if there are none.
	Caution string
}

const (
	argumentNil      = "nil"
	argumentSet      = "set"
	argumentMayBeNil = "may be nil"

	noEffect      = "no effect"
	skipAction    = "the action is skipped, and the reconcile ends with the merged result. In a job, the condition `Waiting` names the hook and its requeue"
	errorToCaller = "the error is never written to the item; the reconcile is retried with backoff"
	errorToJob    = "the action does not run, the error is written to `lastError`, and the run is retried with backoff. " +
		"In a background run, the error is written to the condition `BackgroundReconcile` (status True) instead of `lastError`"
	errorToJobOrCondition = "the reconcile is retried with backoff. If a run is due, the error is written to `lastError`. If no run is due, the phase does not change. " +
		"In this case, the error is written to the condition `BackgroundReconcile` (status Unknown, reason HookFailed) under job IDs, and to `lastError` under annotations"
	leavesInit = "After an abort, the phase of the item stays as it is, such as `Init`, until another reconcile ends the run. At the deadline, the run fails, and the error names the hook"
)

// hookPoints is the table of hook points in the order of the flow. It is read-only.
var hookPoints = [...]HookPoint{
	{
		Type: StartHook, Phase: "start", When: "at the start of every reconcile, before the item is read",
		Item: argumentNil, Target: argumentNil, Merge: MergeRuleAny,
		OnAbort: "the reconcile ends with the merged result, and the item is not read", OnContinue: noEffect, OnError: errorToCaller,
		Caution: "The hook runs for every item that reaches the deployer, even if the item does not exist or belongs to another deployer. " +
			"`patch.FromContext` returns nil",
	},
	{
		Type: DuringResponsibilityCheckHook, Phase: "responsibility", When: "after the default responsibility check of every item of the deployer's type",
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAll,
		OnAbort:    "the deployer is not responsible, regardless of the check, and the reconcile ends with the merged result",
		OnContinue: "the deployer is **responsible**, regardless of the check, and receives the target of the item", OnError: errorToCaller,
		Caution: "An empty result that is not nil claims **every** item of the type, so two deployers would overwrite each other's status. " +
			"An item of another type cannot be claimed. The item may belong to another deployer. For this reason, changes to the item in memory are dropped, and `patch.FromContext` returns nil",
	},
	{
		Type: AfterResponsibilityCheckHook, Phase: "contract", When: "once per reconcile, if the deployer is responsible, before the item is changed",
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAny,
		OnAbort: "the reconcile ends with the merged result, and a run that is due does not start. Only the condition `Waiting` changes: it names the hook and its requeue", OnContinue: noEffect, OnError: errorToJobOrCondition,
		Caution: "As long as this hook aborts, a due run does not start, and Landscaper's pickup timeout may expire. A run that has already started fails at its deadline",
	},
	{
		Type: ShouldReconcileHook, Phase: "should-reconcile", When: "once per reconcile, after the contract has decided whether a run is due; if a run is due, the status of the item already shows that the run has started",
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAll,
		OnAbort:    "if a run is due, the abort is **ignored** and is not remembered for later hook types. Otherwise, the reconcile ends with the merged result, as it would without the hook",
		OnContinue: "if a run is due, no effect. Otherwise, **a run is forced** if the contract allows one", OnError: errorToJobOrCondition,
		Caution: "An empty result that is not nil forces a run at every reconcile. Return nil to have no opinion",
	},
	{
		Type: BeforeAnyReconcileHook, Phase: "operate", When: "before each of the four actions",
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAny,
		OnAbort: skipAction, OnContinue: noEffect, OnError: errorToJob, Caution: leavesInit,
	},
	newBeforePoint(BeforeAbortHook, "Abort"),
	newBeforePoint(BeforeForceReconcileHook, "ForceReconcile"),
	newBeforePoint(BeforeDeleteHook, "Delete"),
	newBeforePoint(BeforeReconcileHook, "Reconcile"),
	{
		Type: EndHook, Phase: "end", When: "after an action that returned nil, before the final write and before the finalizer is removed",
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAny,
		OnAbort: "no effect, because the reconcile ends anyway; the other fields of the result are used", OnContinue: noEffect,
		OnError: "the run does not end: the error is written to `lastError`, and the action is called again with backoff",
		Caution: "The hook is not called if the action returns an error or `WaitFor`, or if another hook aborts. " +
			"It is not called either if the run ends without a call of the deployer (`updateOnChangeOnly`, deletion without uninstall)",
	},
}

func newBeforePoint(t HookType, action string) HookPoint {
	return HookPoint{
		Type: t, Phase: "operate", When: fmt.Sprintf("directly before the deployer's `%s`", action),
		Item: argumentSet, Target: argumentMayBeNil, Merge: MergeRuleAny,
		OnAbort: skipAction, OnContinue: noEffect, OnError: errorToJob, Caution: leavesInit,
	}
}

// AllHookPoints returns a copy of the table of hook points, in the order of the flow.
func AllHookPoints() []HookPoint {
	return append([]HookPoint(nil), hookPoints[:]...)
}

// GetHookPoint returns the point of a hook type. It returns false if the type is unknown.
func GetHookPoint(t HookType) (HookPoint, bool) {
	if p := findHookPoint(t); p != nil {
		return *p, true
	}
	return HookPoint{}, false
}

// AllHookTypes returns the ten hook types in the order of the flow.
func AllHookTypes() []HookType {
	types := make([]HookType, 0, len(hookPoints))
	for i := range hookPoints {
		types = append(types, hookPoints[i].Type)
	}
	return types
}

func findHookPoint(t HookType) *HookPoint {
	for i := range hookPoints {
		if hookPoints[i].Type == t {
			return &hookPoints[i]
		}
	}
	return nil
}
