// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// due and rest build the decisions that the annotation tables expect.
func due(a contract.Action, why string, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Due: true, Forceable: true, Reason: why, Remove: remove}
}

func begin(a contract.Action, why string, remove ...string) contract.Decision {
	d := due(a, why, remove...)
	d.New = true
	return d
}

func rest(a contract.Action, why string, forceable bool, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Forceable: forceable, Reason: why, Remove: remove}
}

const (
	keyOp        = lsv1alpha1.OperationAnnotation
	keyAbort     = contract.AbortTimestampAnnotation
	keyReconcile = lsv1alpha1.ReconcileTimestampAnnotation
)

func TestAnnotationOperations(t *testing.T) {
	t.Parallel()
	rec, abort, force, del := contract.Reconcile, contract.Abort, contract.ForceReconcile, contract.Delete
	picked := note(keyReconcile, "2026-03-04T05:06:07Z")
	asked := note(keyAbort, "2026-03-04T05:06:07Z")
	runDecisions(t, annotated(), map[string]decisionCase{
		"reconcile is acted on and removed [L26] [C3]": {"restarts", ran(phSucceeded, op("reconcile")), begin(rec, contract.WhyOperation, keyOp)},
		"reconcile-time is removed at pickup [C5]": {
			"else Landscaper fails it", ran(phSucceeded, op("reconcile"), picked), begin(rec, contract.WhyOperation, keyOp, keyReconcile),
		},
		"reconcile restarts a run [C3]": {"in mid-run too", ran(phProgressing, op("reconcile")), begin(rec, contract.WhyOperation, keyOp)},
		"reconcile-time on a resume [C5]": {
			"a crash left it", ran(phInit, picked), due(rec, contract.WhyInProgress, keyReconcile),
		},
		"reconcile-time of a finished item": {"no write for a finished item", ran(phSucceeded, picked), rest(rec, contract.WhyFinished, true)},
		"changed generation [L27] [C7]":     {"spec changed", ran(phSucceeded, generation(4)), begin(rec, contract.WhyGeneration)},
		"changed in mid-run [L27]":          {"begins again", ran(phProgressing, generation(4)), begin(rec, contract.WhyInProgress)},
		"never started [C7]":                {"new item", item(), begin(rec, contract.WhyNotStarted)},
		"equal generations of a fake [C7]":  {"fake clients have generation 0", item(generation(0)), begin(rec, contract.WhyNotStarted)},
		"without a start time [C-11] [H-3]": {"its deadline would be unknown", item(phased(phProgressing), observed(3)), begin(rec, contract.WhyNotStarted)},
		"force on a finished item [Lx7]":    {"its generation did not change", ran(phSucceeded, op("force-reconcile")), begin(force, contract.WhyOperation)},
		"force in mid-run":                  {"goes on as that action", ran(phProgressing, op("force-reconcile")), due(force, contract.WhyInProgress)},
		"force of a new generation":         {"begins again", ran(phProgressing, op("force-reconcile"), generation(4)), begin(force, contract.WhyInProgress)},
		"abort in mid-run [C4]":             {"stop gracefully", ran(phProgressing, op("abort"), asked), due(abort, contract.WhyInProgress)},
		"abort of a changed item [C-7]":     {"abort never begins a run", ran(phProgressing, op("abort"), generation(4)), due(abort, contract.WhyInProgress)},
		"abort of a finished item [Lx7]":    {"consumed", ran(phSucceeded, op("abort"), asked), rest(rec, contract.WhyFinished, true, keyOp, keyAbort)},
		"abort left over, spec changed [C-7]": {
			"consumed, then the change runs", ran(phFailed, op("abort"), asked, generation(4)), begin(rec, contract.WhyGeneration, keyOp, keyAbort),
		},
		"abort left over, deletion [C-7]": {
			"consumed, then Delete", ran(phFailed, op("abort"), deleted(-1), finalizer, generation(4)), begin(del, contract.WhyGeneration, keyOp),
		},
		"abort before any run": {"ends as failed", item(op("abort")), begin(abort, contract.WhyNotStarted)},
		"test-reconcile":       {"means nothing here", ran(phSucceeded, op("test-reconcile")), rest(rec, contract.WhyFinished, true)},
	})
}

func TestAnnotationDeletion(t *testing.T) {
	t.Parallel()
	del, force := contract.Delete, contract.ForceReconcile
	gone := func(di *lsv1alpha1.DeployItem) { deleted(-3)(di); finalizer(di) }
	runDecisions(t, annotated(), map[string]decisionCase{
		"finished, generation bumped [C13]":   {"the API server bumps it", ran(phSucceeded, gone, generation(4)), begin(del, contract.WhyGeneration)},
		"finished, same generation [Lx7]":     {"fake clients do not", ran(phSucceeded, gone), begin(del, contract.WhyDeletion)},
		"failed before it was deleted [Lx7]":  {"no Delete ran", ran(phFailed, gone), begin(del, contract.WhyDeletion)},
		"Delete failed":                       {"rests", ran(phFailed, gone, reconciled(-3)), rest(del, contract.WhyDeleteFailed, false)},
		"Delete failed in its second":         {"whole seconds", ran(phFailed, gone, reconciled(-3), func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = ref(at(-3).Add(900e6)) }), rest(del, contract.WhyDeleteFailed, false)},
		"Delete failed, reconcile":            {"asked again", ran(phFailed, gone, reconciled(-2), op("reconcile")), begin(del, contract.WhyOperation, keyOp)},
		"Delete failed, force":                {"asked again", ran(phFailed, gone, reconciled(-2), op("force-reconcile")), begin(force, contract.WhyOperation)},
		"Delete failed, generation":           {"asked again", ran(phFailed, gone, reconciled(-2), generation(4)), begin(del, contract.WhyGeneration)},
		"never started [C13]":                 {"due", item(gone), begin(del, contract.WhyNotStarted)},
		"never started, managed [C13]":        {"classic Landscaper deletes without an operation", item(gone, managed, generation(2)), begin(del, contract.WhyNotStarted)},
		"in progress [C14]":                   {"goes on", ran(phDeleting, gone, reconciled(-2)), due(del, contract.WhyInProgress)},
		"abort ran first":                     {"Delete is still to come", ran(phFailed, gone, reconciled(-2), generation(4)), begin(del, contract.WhyGeneration)},
		"force runs before Delete":            {"begins once", ran(phSucceeded, gone, generation(4), op("force-reconcile")), begin(force, contract.WhyOperation)},
		"force is tried again before Delete":  {"and does not begin again", ran(phInit, gone, reconciled(-2), generation(4), op("force-reconcile")), due(force, contract.WhyInProgress)},
		"force found a run before the delete": {"begins a run of its own", ran(phProgressing, gone, generation(4), op("force-reconcile")), begin(force, contract.WhyInProgress)},
	})
}

func TestAnnotationAwaitsJob(t *testing.T) {
	t.Parallel()
	rec := contract.Reconcile
	runDecisions(t, annotated(), map[string]decisionCase{
		"managed, never asked for":         {"the job ID comes a moment later", item(managed), rest(rec, contract.WhyAwaitingJob, false)},
		"managed, operation [C3]":          {"classic Landscaper asks", item(managed, op("reconcile")), begin(rec, contract.WhyOperation, keyOp)},
		"managed, changed later [L27]":     {"generation counts once it was processed", ran(phSucceeded, managed, generation(4)), begin(rec, contract.WhyGeneration)},
		"managed, observed without phase":  {"it was processed", item(managed, observed(2)), begin(rec, contract.WhyNotStarted)},
		"managed, in a phase":              {"it was processed", item(managed, phased(phUnknown)), begin(rec, contract.WhyNotStarted)},
		"managed by nobody, the same item": {"a hand-made item runs", item(), begin(rec, contract.WhyNotStarted)},
	})
}

// TestAnnotationFinalPhases is row L29: a final phase without news is left alone.
func TestAnnotationFinalPhases(t *testing.T) {
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
