// SPDX-License-Identifier: Apache-2.0

package extension

import "fmt"

// Merge is how AbortReconcile of several results of one hook type is merged.
type Merge string

const (
	// MergeAny aborts if at least one result aborts.
	MergeAny Merge = "any"
	// MergeAll aborts if all non-nil results abort.
	MergeAll Merge = "all"
)

// Point describes a hook type: where it runs, its arguments, and the effects of its merged result and of an error. The
// table in docs/hooks.md is generated from the points, and a test of deployerlib checks that each of them is wired.
type Point struct {
	// Type is the hook type.
	Type HookType
	// Phase is the phase of deployerlib's flow that calls the hook: start, responsibility, contract, should-reconcile,
	// operate or end.
	Phase string
	// When describes at which moment, and how often per reconcile, the hook is called.
	When string
	// Item and Target describe the arguments, each as "nil", "set" or "may be nil".
	Item, Target string
	// Merge is how AbortReconcile is merged.
	Merge Merge
	// OnAbort describes the effect of a merged result with AbortReconcile=true.
	OnAbort string
	// OnContinue describes the effect of a non-nil result that does not abort. This includes an empty result.
	OnContinue string
	// OnError describes what happens with an error. The reconcile ends with an empty result in any case.
	OnError string
	// Caution describes what to watch out for. It is "" if there is nothing.
	Caution string
}

const (
	isNil    = "nil"
	isSet    = "set"
	mayBeNil = "may be nil"

	goesOn     = "nothing"
	skipAction = "the action is skipped, and the reconcile ends with the merged result"
	toCaller   = "returned and retried with backoff; never written to the item"
	toJob      = "`lastError` and backoff; the action does not run (background run: condition `BackgroundReconcile`=True instead)"
	toDueOrNot = "due: `lastError` and backoff. Not due: `BackgroundReconcile`=Unknown/HookFailed and backoff under job IDs, " +
		"`lastError` under annotations; the phase stays"
	leavesInit = "An abort leaves the item in `Init` until another reconcile or the deadline ends the run"
)

// points is the table of hook points in the order of the flow. It is read-only.
var points = [...]Point{
	{
		Type: StartHook, Phase: "start", When: "at the start of every reconcile, before the item is read",
		Item: isNil, Target: isNil, Merge: MergeAny,
		OnAbort: "the reconcile ends with the merged result, and the item is not read", OnContinue: goesOn, OnError: toCaller,
		Caution: "Runs for every item that reaches the deployer, even if the item does not exist or belongs to another deployer; " +
			"there is no running patch",
	},
	{
		Type: DuringResponsibilityCheckHook, Phase: "responsibility", When: "after the default responsibility check of every item of the deployer's type",
		Item: isSet, Target: mayBeNil, Merge: MergeAll,
		OnAbort:    "not responsible, regardless of the check; the reconcile ends with the merged result",
		OnContinue: "**responsible**, regardless of the check (the target is the one of the item)", OnError: toCaller,
		Caution: "An empty result that is not nil claims **every** item of the type, so two deployers would overwrite each other's status. " +
			"An item of another type cannot be claimed. Changes to the item in memory are dropped and there is no running patch, because the item may belong to another deployer",
	},
	{
		Type: AfterResponsibilityCheckHook, Phase: "contract", When: "once per reconcile, when the deployer is responsible and nothing has changed yet",
		Item: isSet, Target: mayBeNil, Merge: MergeAny,
		OnAbort: "the reconcile ends with the merged result, and the item does not change", OnContinue: goesOn, OnError: toDueOrNot,
		Caution: "A due run does not start as long as this hook aborts, and Landscaper's pickup timeout continues",
	},
	{
		Type: ShouldReconcileHook, Phase: "should-reconcile", When: "once per reconcile, after the contract has decided whether a run is due; if it is, the item shows the started run",
		Item: isSet, Target: mayBeNil, Merge: MergeAll,
		OnAbort:    "due: **ignored**, now and at later points. Not due: the reconcile ends with the merged result, as it does without the hook",
		OnContinue: "due: nothing. Not due: **a run is forced** where the contract allows one", OnError: toDueOrNot,
		Caution: "An empty result that is not nil forces a run at every reconcile. Return nil to have no opinion",
	},
	{
		Type: BeforeAnyReconcileHook, Phase: "operate", When: "before each of the four actions",
		Item: isSet, Target: mayBeNil, Merge: MergeAny,
		OnAbort: skipAction, OnContinue: goesOn, OnError: toJob, Caution: leavesInit,
	},
	before(BeforeAbortHook, "Abort"),
	before(BeforeForceReconcileHook, "ForceReconcile"),
	before(BeforeDeleteHook, "Delete"),
	before(BeforeReconcileHook, "Reconcile"),
	{
		Type: EndHook, Phase: "end", When: "after an action that returned nil, before the final write and before the finalizer is removed",
		Item: isSet, Target: mayBeNil, Merge: MergeAny,
		OnAbort: "nothing, because nothing is left to end; the rest of the result counts", OnContinue: goesOn,
		OnError: "the run does not end: `lastError` and backoff, and the action runs again",
		Caution: "Not called after an error, an abort by a hook, `WaitFor`, an unchanged item or a deletion without uninstall",
	},
}

func before(t HookType, action string) Point {
	return Point{
		Type: t, Phase: "operate", When: fmt.Sprintf("directly before the deployer's `%s`", action),
		Item: isSet, Target: mayBeNil, Merge: MergeAny,
		OnAbort: skipAction, OnContinue: goesOn, OnError: toJob, Caution: leavesInit,
	}
}

// Points returns a copy of the table of hook points, in the order of the flow.
func Points() []Point {
	return append([]Point(nil), points[:]...)
}

// PointOf returns the point of a hook type. It returns false if the type is unknown.
func PointOf(t HookType) (Point, bool) {
	if p := find(t); p != nil {
		return *p, true
	}
	return Point{}, false
}

// HookTypes returns the ten hook types in the order of the flow.
func HookTypes() []HookType {
	types := make([]HookType, 0, len(points))
	for i := range points {
		types = append(types, points[i].Type)
	}
	return types
}

func find(t HookType) *Point {
	for i := range points {
		if points[i].Type == t {
			return &points[i]
		}
	}
	return nil
}
