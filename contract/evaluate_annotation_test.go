// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// due returns the decision that a table expects if a run is due.
func due(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Due: true, Forceable: true, Reason: why, Remove: remove}
}

func begin(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	d := due(a, why, remove...)
	d.New = true
	return d
}

func rest(a contract.Action, why contract.Reason, forceable bool, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Forceable: forceable, Reason: why, Remove: remove}
}

const (
	keyOp        = lsv1alpha1.OperationAnnotation
	keyAbort     = contract.AbortTimestampAnnotation
	keyReconcile = lsv1alpha1.ReconcileTimestampAnnotation
)

func TestEvaluateAnnotationOperation(t *testing.T) {
	t.Parallel()
	rec, abort, force, del := contract.ActionReconcile, contract.ActionAbort, contract.ActionForceReconcile, contract.ActionDelete
	picked := note(keyReconcile, "2026-03-04T05:06:07Z")
	asked := note(keyAbort, "2026-03-04T05:06:07Z")
	runDecisions(t, annotated(), map[string]decisionCase{
		"operation reconcile starts a run and is removed [L26] [C3]": {"restarts", ran(phSucceeded, op("reconcile")), begin(rec, "Operation", keyOp)},
		"reconcile-time is removed at pickup [C5]": {
			"else Landscaper fails it", ran(phSucceeded, op("reconcile"), picked), begin(rec, "Operation", keyOp, keyReconcile),
		},
		"operation reconcile restarts a run in progress [C3]": {"in mid-run too", ran(phProgressing, op("reconcile")), begin(rec, "Operation", keyOp)},
		"reconcile-time is removed when a run continues after a restart [C5]": {
			"a crash left it", ran(phInit, picked), due(rec, "InProgress", keyReconcile),
		},
		"reconcile-time of a finished item is kept":              {"no write for a finished item", ran(phSucceeded, picked), rest(rec, "Finished", true)},
		"changed generation of a finished item [L27] [C7]":       {"spec changed", ran(phSucceeded, generation(4)), begin(rec, "Generation")},
		"changed generation during a run [L27]":                  {"begins again", ran(phProgressing, generation(4)), begin(rec, "InProgress")},
		"item without a run [C7]":                                {"new item", item(), begin(rec, "NotStarted")},
		"item with generation 0, as fake clients create it [C7]": {"fake clients have generation 0", item(generation(0)), begin(rec, "NotStarted")},
		"run without a start time [C-11] [H-3]":                  {"its deadline would be unknown", item(phased(phProgressing), observed(3)), begin(rec, "NotStarted")},
		"force-reconcile of a finished item [Lx7]":               {"its generation did not change", ran(phSucceeded, op("force-reconcile")), begin(force, "Operation")},
		"force-reconcile during a run":                           {"goes on as that action", ran(phProgressing, op("force-reconcile")), due(force, "InProgress")},
		"force-reconcile with a new generation":                  {"begins again", ran(phProgressing, op("force-reconcile"), generation(4)), begin(force, "InProgress")},
		"abort during a run [C4]":                                {"stop gracefully", ran(phProgressing, op("abort"), asked), due(abort, "InProgress")},
		"abort with a new generation [C-7]":                      {"abort never begins a run", ran(phProgressing, op("abort"), generation(4)), due(abort, "InProgress")},
		"abort of a finished item [Lx7]":                         {"consumed", ran(phSucceeded, op("abort"), asked), rest(rec, "Finished", true, keyOp, keyAbort)},
		"late abort before a run of a changed spec [C-7]": {
			"consumed, then the change runs", ran(phFailed, op("abort"), asked, generation(4)), begin(rec, "Generation", keyOp, keyAbort),
		},
		"late abort before a deletion [C-7]": {
			"consumed, then Delete", ran(phFailed, op("abort"), deleted(-1), finalizer, generation(4)), begin(del, "Generation", keyOp),
		},
		"abort before the first run":   {"ends as failed", item(op("abort")), begin(abort, "NotStarted")},
		"test-reconcile has no effect": {"means nothing here", ran(phSucceeded, op("test-reconcile")), rest(rec, "Finished", true)},
	})
}

func TestEvaluateAnnotationDeletion(t *testing.T) {
	t.Parallel()
	del, force := contract.ActionDelete, contract.ActionForceReconcile
	gone := func(di *lsv1alpha1.DeployItem) { deleted(-3)(di); finalizer(di) }
	runDecisions(t, annotated(), map[string]decisionCase{
		"deletion of a finished item with a new generation [C13]":    {"the API server bumps it", ran(phSucceeded, gone, generation(4)), begin(del, "Generation")},
		"deletion of a finished item with the same generation [Lx7]": {"fake clients do not", ran(phSucceeded, gone), begin(del, "Deletion")},
		"deletion of an item that failed before [Lx7]":               {"no Delete ran", ran(phFailed, gone), begin(del, "Deletion")},
		"failed deletion": {"rests", ran(phFailed, gone, reconciled(-3)), rest(del, "DeleteFailed", false)},
		"deletion that failed within the second in which it began": {"whole seconds", ran(phFailed, gone, reconciled(-3), func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = ref(at(-3).Add(900e6)) }), rest(del, "DeleteFailed", false)},
		"failed deletion with the operation reconcile":             {"asked again", ran(phFailed, gone, reconciled(-2), op("reconcile")), begin(del, "Operation", keyOp)},
		"failed deletion with force-reconcile":                     {"asked again", ran(phFailed, gone, reconciled(-2), op("force-reconcile")), begin(force, "Operation")},
		"failed deletion with a new generation":                    {"asked again", ran(phFailed, gone, reconciled(-2), generation(4)), begin(del, "Generation")},
		"deletion of an item without a run [C13]":                  {"due", item(gone), begin(del, "NotStarted")},
		"deletion of an item of an Execution without a run [C13]":  {"classic Landscaper deletes without an operation", item(gone, managed, generation(2)), begin(del, "NotStarted")},
		"deletion in progress [C14]":                               {"goes on", ran(phDeleting, gone, reconciled(-2)), due(del, "InProgress")},
		"deletion after an abort":                                  {"Delete is still to come", ran(phFailed, gone, reconciled(-2), generation(4)), begin(del, "Generation")},
		"force-reconcile begins before the deletion":               {"begins once", ran(phSucceeded, gone, generation(4), op("force-reconcile")), begin(force, "Operation")},
		"force-reconcile is repeated before the deletion":          {"and does not begin again", ran(phInit, gone, reconciled(-2), generation(4), op("force-reconcile")), due(force, "InProgress")},
		"force-reconcile before the deletion during a run":         {"begins a run of its own", ran(phProgressing, gone, generation(4), op("force-reconcile")), begin(force, "InProgress")},
	})
}

func TestEvaluateAnnotationItemOfExecution(t *testing.T) {
	t.Parallel()
	rec := contract.ActionReconcile
	runDecisions(t, annotated(), map[string]decisionCase{
		"item of an Execution without an operation":                           {"the job ID comes a moment later", item(managed), rest(rec, "AwaitingJob", false)},
		"item of an Execution with the operation reconcile [C3]":              {"classic Landscaper asks", item(managed, op("reconcile")), begin(rec, "Operation", keyOp)},
		"item of an Execution with a new generation [L27]":                    {"generation counts once it was processed", ran(phSucceeded, managed, generation(4)), begin(rec, "Generation")},
		"item of an Execution with an observedGeneration and without a phase": {"it was processed", item(managed, observed(2)), begin(rec, "NotStarted")},
		"item of an Execution with a phase":                                   {"it was processed", item(managed, phased(phUnknown)), begin(rec, "NotStarted")},
		"item without an Execution":                                           {"a hand-made item runs", item(), begin(rec, "NotStarted")},
	})
}

// TestEvaluateAnnotationFinalPhase checks that no run is due if the phase is final and nothing new was requested (row
// L29).
func TestEvaluateAnnotationFinalPhase(t *testing.T) {
	t.Parallel()
	for _, p := range all {
		t.Run(fmt.Sprintf("%q [L29] [C8]", p), func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(ran(p), annotated()); got.Due == isDone(p) {
				t.Errorf("Evaluate() = %+v", got)
			}
			if got := contract.Evaluate(ran(p, job("a", "a", -6)), jobOptions()); got.Due {
				t.Errorf("finished job: %+v [C8]", got)
			}
		})
	}
}
