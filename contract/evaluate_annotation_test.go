// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// newDueDecision returns the decision that a table expects if a run is due.
func newDueDecision(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Due: true, Forceable: true, Reason: why, RemoveAnnotations: remove}
}

func newStartDecision(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	d := newDueDecision(a, why, remove...)
	d.New = true
	return d
}

func newIdleDecision(a contract.Action, why contract.Reason, forceable bool, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Forceable: forceable, Reason: why, RemoveAnnotations: remove}
}

const (
	keyOp        = lsv1alpha1.OperationAnnotation
	keyAbort     = contract.AbortTimestampAnnotation
	keyReconcile = lsv1alpha1.ReconcileTimestampAnnotation
)

func TestEvaluateAnnotationOperation(t *testing.T) {
	t.Parallel()
	rec, abort, force, del := contract.ActionReconcile, contract.ActionAbort, contract.ActionForceReconcile, contract.ActionDelete
	picked := withAnnotation(keyReconcile, "2026-03-04T05:06:07Z")
	asked := withAnnotation(keyAbort, "2026-03-04T05:06:07Z")
	runDecisions(t, newAnnotationOptions(), map[string]decisionCase{
		"operation reconcile starts a run and is removed [L26] [C3]": {"restarts", newStartedItem(phSucceeded, withOperation("reconcile")), newStartDecision(rec, "Operation", keyOp)},
		"reconcile-time is removed at pickup [C5]": {
			"else Landscaper fails it", newStartedItem(phSucceeded, withOperation("reconcile"), picked), newStartDecision(rec, "Operation", keyOp, keyReconcile),
		},
		"operation reconcile restarts a run in progress [C3]": {"in mid-run too", newStartedItem(phProgressing, withOperation("reconcile")), newStartDecision(rec, "Operation", keyOp)},
		"reconcile-time is removed when a run continues after a restart [C5]": {
			"a crash left it", newStartedItem(phInit, picked), newDueDecision(rec, "InProgress", keyReconcile),
		},
		"reconcile-time of a finished item is kept":              {"no write for a finished item", newStartedItem(phSucceeded, picked), newIdleDecision(rec, "Finished", true)},
		"changed generation of a finished item [L27] [C7]":       {"spec changed", newStartedItem(phSucceeded, withGeneration(4)), newStartDecision(rec, "Generation")},
		"changed generation during a run [L27]":                  {"begins again", newStartedItem(phProgressing, withGeneration(4)), newStartDecision(rec, "InProgress")},
		"item without a run [C7]":                                {"new item", newItem(), newStartDecision(rec, "NotStarted")},
		"item with generation 0, as fake clients create it [C7]": {"fake clients have generation 0", newItem(withGeneration(0)), newStartDecision(rec, "NotStarted")},
		"run without a start time [C-11] [H-3]":                  {"its deadline would be unknown", newItem(withPhase(phProgressing), withObservedGeneration(3)), newStartDecision(rec, "NotStarted")},
		"force-reconcile of a finished item [Lx7]":               {"its generation did not change", newStartedItem(phSucceeded, withOperation("force-reconcile")), newStartDecision(force, "Operation")},
		"force-reconcile during a run":                           {"goes on as that action", newStartedItem(phProgressing, withOperation("force-reconcile")), newDueDecision(force, "InProgress")},
		"force-reconcile with a new generation":                  {"begins again", newStartedItem(phProgressing, withOperation("force-reconcile"), withGeneration(4)), newStartDecision(force, "InProgress")},
		"abort during a run [C4]":                                {"stop gracefully", newStartedItem(phProgressing, withOperation("abort"), asked), newDueDecision(abort, "InProgress")},
		"abort with a new generation [C-7]":                      {"abort never begins a run", newStartedItem(phProgressing, withOperation("abort"), withGeneration(4)), newDueDecision(abort, "InProgress")},
		"abort of a finished item [Lx7]":                         {"consumed", newStartedItem(phSucceeded, withOperation("abort"), asked), newIdleDecision(rec, "Finished", true, keyOp, keyAbort)},
		"late abort before a run of a changed spec [C-7]": {
			"consumed, then the change runs", newStartedItem(phFailed, withOperation("abort"), asked, withGeneration(4)), newStartDecision(rec, "Generation", keyOp, keyAbort),
		},
		"late abort before a deletion [C-7]": {
			"consumed, then Delete", newStartedItem(phFailed, withOperation("abort"), withDeletionTime(-1), withFinalizer, withGeneration(4)), newStartDecision(del, "Generation", keyOp),
		},
		"abort before the first run":   {"ends as failed", newItem(withOperation("abort")), newStartDecision(abort, "NotStarted")},
		"test-reconcile has no effect": {"means nothing here", newStartedItem(phSucceeded, withOperation("test-reconcile")), newIdleDecision(rec, "Finished", true)},
	})
}

func TestEvaluateAnnotationDeletion(t *testing.T) {
	t.Parallel()
	del, force := contract.ActionDelete, contract.ActionForceReconcile
	gone := func(di *lsv1alpha1.DeployItem) { withDeletionTime(-3)(di); withFinalizer(di) }
	runDecisions(t, newAnnotationOptions(), map[string]decisionCase{
		"deletion of a finished item with a new generation [C13]":    {"the API server bumps it", newStartedItem(phSucceeded, gone, withGeneration(4)), newStartDecision(del, "Generation")},
		"deletion of a finished item with the same generation [Lx7]": {"fake clients do not", newStartedItem(phSucceeded, gone), newStartDecision(del, "Deletion")},
		"deletion of an item that failed before [Lx7]":               {"no Delete ran", newStartedItem(phFailed, gone), newStartDecision(del, "Deletion")},
		"failed deletion": {"rests", newStartedItem(phFailed, gone, withLastReconcileTime(-3)), newIdleDecision(del, "DeleteFailed", false)},
		"deletion that failed within the second in which it began": {"whole seconds", newStartedItem(phFailed, gone, withLastReconcileTime(-3), func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = ptrTo(afterMinutes(-3).Add(900e6)) }), newIdleDecision(del, "DeleteFailed", false)},
		"failed deletion with the operation reconcile":             {"asked again", newStartedItem(phFailed, gone, withLastReconcileTime(-2), withOperation("reconcile")), newStartDecision(del, "Operation", keyOp)},
		"failed deletion with force-reconcile":                     {"asked again", newStartedItem(phFailed, gone, withLastReconcileTime(-2), withOperation("force-reconcile")), newStartDecision(force, "Operation")},
		"failed deletion with a new generation":                    {"asked again", newStartedItem(phFailed, gone, withLastReconcileTime(-2), withGeneration(4)), newStartDecision(del, "Generation")},
		"deletion of an item without a run [C13]":                  {"due", newItem(gone), newStartDecision(del, "NotStarted")},
		"deletion of an item of an Execution without a run [C13]":  {"classic Landscaper deletes without an operation", newItem(gone, withManagedLabel, withGeneration(2)), newStartDecision(del, "NotStarted")},
		"deletion in progress [C14]":                               {"goes on", newStartedItem(phDeleting, gone, withLastReconcileTime(-2)), newDueDecision(del, "InProgress")},
		"deletion after an abort":                                  {"Delete is still to come", newStartedItem(phFailed, gone, withLastReconcileTime(-2), withGeneration(4)), newStartDecision(del, "Generation")},
		"force-reconcile begins before the deletion":               {"begins once", newStartedItem(phSucceeded, gone, withGeneration(4), withOperation("force-reconcile")), newStartDecision(force, "Operation")},
		"force-reconcile is repeated before the deletion":          {"and does not begin again", newStartedItem(phInit, gone, withLastReconcileTime(-2), withGeneration(4), withOperation("force-reconcile")), newDueDecision(force, "InProgress")},
		"force-reconcile before the deletion during a run":         {"begins a run of its own", newStartedItem(phProgressing, gone, withGeneration(4), withOperation("force-reconcile")), newStartDecision(force, "InProgress")},
	})
}

func TestEvaluateAnnotationItemOfExecution(t *testing.T) {
	t.Parallel()
	rec := contract.ActionReconcile
	runDecisions(t, newAnnotationOptions(), map[string]decisionCase{
		"item of an Execution without an operation":                           {"the job ID comes a moment later", newItem(withManagedLabel), newIdleDecision(rec, "AwaitingJob", false)},
		"item of an Execution with the operation reconcile [C3]":              {"classic Landscaper asks", newItem(withManagedLabel, withOperation("reconcile")), newStartDecision(rec, "Operation", keyOp)},
		"item of an Execution with a new generation [L27]":                    {"generation counts once it was processed", newStartedItem(phSucceeded, withManagedLabel, withGeneration(4)), newStartDecision(rec, "Generation")},
		"item of an Execution with an observedGeneration and without a phase": {"it was processed", newItem(withManagedLabel, withObservedGeneration(2)), newStartDecision(rec, "NotStarted")},
		"item of an Execution with a phase":                                   {"it was processed", newItem(withManagedLabel, withPhase(phUnknown)), newStartDecision(rec, "NotStarted")},
		"item without an Execution":                                           {"a hand-made item runs", newItem(), newStartDecision(rec, "NotStarted")},
	})
}

// TestEvaluateAnnotationFinalPhase checks that no run is due if the phase is final and nothing new was requested (row
// L29).
func TestEvaluateAnnotationFinalPhase(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		t.Run(fmt.Sprintf("%q [L29] [C8]", p), func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(newStartedItem(p), newAnnotationOptions()); got.Due == isDone(p) {
				t.Errorf("Evaluate() = %+v", got)
			}
			if got := contract.Evaluate(newStartedItem(p, withJob("a", "a", -6)), newJobOptions()); got.Due {
				t.Errorf("finished job: %+v [C8]", got)
			}
		})
	}
}
