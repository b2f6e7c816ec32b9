// SPDX-License-Identifier: Apache-2.0

package extension

import "fmt"

// Merge says how AbortReconcile of several results of one hook type is merged.
type Merge string

const (
	// MergeAny says that one result that aborts is enough.
	MergeAny Merge = "any"
	// MergeAll says that all results that are not nil must abort; one that continues wins.
	MergeAll Merge = "all"
)

// Point describes a hook type: where it runs, what it is given and what its merged result and its error do. The table
// in docs/hooks.md is made of these, and deployerlib tests that it wires each of them.
type Point struct {
	// Type is the hook type.
	Type HookType
	// Phase is the phase of deployerlib's flow that runs it: start, responsibility, contract, should-reconcile,
	// operate or end.
	Phase string
	// When says at which moment, and how often in a pass.
	When string
	// Item and Target say when the arguments are nil: "nil", "set" or "may be nil".
	Item, Target string
	// Merge is how AbortReconcile is merged.
	Merge Merge
	// OnAbort says what AbortReconcile=true does once merged.
	OnAbort string
	// OnContinue says what a result that is not nil and does not abort does. An empty result is one, too.
	OnContinue string
	// OnError says where an error goes. The pass ends with an empty result in any case.
	OnError string
	// Caution is what to mind, "" if nothing.
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

// Points returns the table of hook points in the order of the flow; it is the caller's own.
func Points() []Point {
	return append([]Point(nil), points[:]...)
}

// PointOf returns the row of a hook type, false for an unknown one.
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
