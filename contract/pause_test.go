// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// newBlockedDecision returns the decision for a paused item for which the action a would otherwise be due.
func newBlockedDecision(a contract.Action, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Paused: true, BlockedByPause: true, Reason: "Paused", RemoveAnnotations: remove}
}

// newPausedDecision returns the decision for a paused item for which no run would be due.
func newPausedDecision(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Paused: true, Reason: why, RemoveAnnotations: remove}
}

func TestEvaluatePausedAnnotationItem(t *testing.T) {
	t.Parallel()
	rec, del, force, abort := contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile, contract.ActionAbort
	goneBefore := func(di *lsv1alpha1.DeployItem) { withDeletionTime(-6)(di); withFinalizer(di) } // the deletion was requested before the last run began
	goneSince := func(di *lsv1alpha1.DeployItem) { withDeletionTime(-1)(di); withFinalizer(di) }
	runDecisions(t, newAnnotationOptions(), map[string]decisionCase{
		"a new item [Yx2]":                                          {"nothing begins", newItem(withPause), newBlockedDecision(rec)},
		"a new generation [Yx2]":                                    {"nothing begins", newStartedItem(phSucceeded, withPause, withGeneration(4)), newBlockedDecision(rec)},
		"the operation reconcile [Yx2]":                             {"it stays asked for", newStartedItem(phSucceeded, withPause, withOperation("reconcile"), withAnnotation(keyReconcile, "x")), newBlockedDecision(rec)},
		"force-reconcile [Yx2]":                                     {"it stays asked for", newStartedItem(phSucceeded, withPause, withOperation("force-reconcile")), newBlockedDecision(force)},
		"a deletion [Yx2]":                                          {"nothing is deleted", newStartedItem(phSucceeded, withPause, goneSince), newBlockedDecision(del)},
		"a deletion without uninstall [Yx2]":                        {"the item stays, too", newStartedItem(phSucceeded, withPause, goneSince, withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")), newBlockedDecision(del)},
		"an item with nothing to do [Yx2]":                          {"no hook may force a run", newStartedItem(phSucceeded, withPause), newPausedDecision(rec, "Finished")},
		"a late abort [Yx2]":                                        {"is consumed", newStartedItem(phSucceeded, withPause, withOperation("abort")), newPausedDecision(rec, "Finished", keyOp)},
		"a run in progress [Yx2]":                                   {"goes on", newStartedItem(phProgressing, withPause), newDueDecision(rec, "InProgress")},
		"a run in progress with force-reconcile [Yx2]":              {"goes on with that action", newStartedItem(phProgressing, withPause, withOperation("force-reconcile")), newDueDecision(force, "InProgress")},
		"a run in progress with a new generation [Yx2]":             {"the old one goes on", newStartedItem(phProgressing, withPause, withGeneration(4)), newDueDecision(rec, "InProgress")},
		"a run in progress with the operation reconcile [Yx2]":      {"the old one goes on, the operation stays", newStartedItem(phProgressing, withPause, withOperation("reconcile")), newDueDecision(rec, "Operation")},
		"a run in progress of an item that was deleted later [Yx2]": {"a deletion is another run", newStartedItem(phProgressing, withPause, goneSince, withGeneration(4)), newBlockedDecision(del)},
		"a deletion in progress [Yx2]":                              {"goes on", newStartedItem(phInit, withPause, goneBefore), newDueDecision(del, "InProgress")},
		"a phase of a run that never started [Yx2]":                 {"it would begin", newItem(withPhase(phProgressing), withObservedGeneration(3), withPause), newBlockedDecision(rec)},
		"an abort [Yx2]":                                            {"is obeyed", newStartedItem(phProgressing, withPause, withOperation("abort")), newDueDecision(abort, "InProgress")},
		"an abort before a deletion [Yx2]":                          {"is obeyed", newStartedItem(phProgressing, withPause, withOperation("abort"), goneSince, withGeneration(4)), newDueDecision(abort, "InProgress")},
		"an annotation with another value":                          {"only true counts", newStartedItem(phSucceeded, withAnnotation(contract.PausedAnnotation, "yes"), withGeneration(4)), newStartDecision(rec, "Generation")},
		"ignored":                                                   {"ignore says more", newStartedItem(phSucceeded, withPause, withAnnotation(lsv1alpha1.IgnoreAnnotation, "true"), withGeneration(4)), contract.Decision{Reason: "Ignored"}},
	})
}

func TestEvaluatePausedJob(t *testing.T) {
	t.Parallel()
	rec, del, force, abort := contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile, contract.ActionAbort
	pending, finished := withJob("b", "a", -5), withJob("a", "a", -6)
	gone := func(di *lsv1alpha1.DeployItem) { withDeletionTime(-6)(di); withFinalizer(di) }
	over := newDueDecision(del, "InProgress")
	over.Expired = true
	runDecisions(t, newJobOptions(), map[string]decisionCase{
		"a new job [Yx2]":                                           {"it waits", newStartedItem(phSucceeded, pending, withLastReconcileTime(-9), withPause), newBlockedDecision(rec)},
		"a first job [Yx2]":                                         {"it waits", newItem(withJob("a", "", -1), withPause), newBlockedDecision(rec)},
		"a job without a change [Yx2]":                              {"it is not even finished", newStartedItem(phSucceeded, pending, withUpdateOnChangeOnly, withPause), newBlockedDecision(rec)},
		"a job that deletes [Yx2]":                                  {"nothing is deleted", newStartedItem(phSucceeded, pending, gone, withPause), newBlockedDecision(del)},
		"a job with test-reconcile [Yx2]":                           {"the operation stays", newStartedItem(phSucceeded, pending, withOperation("test-reconcile"), withPause), newBlockedDecision(rec)},
		"test-reconcile [Yx2]":                                      {"it stays asked for", newStartedItem(phSucceeded, finished, withOperation("test-reconcile"), withPause), newBlockedDecision(rec)},
		"force-reconcile [Yx2]":                                     {"no background run begins", newStartedItem(phSucceeded, finished, withOperation("force-reconcile"), withPause), newBlockedDecision(force)},
		"an item with nothing to do [Yx2]":                          {"no hook may force a run", newStartedItem(phSucceeded, finished, withPause), newPausedDecision(rec, "Finished")},
		"a deletion without its job [Yx2]":                          {"nothing is held back", newStartedItem(phSucceeded, finished, gone, withPause), newPausedDecision(del, "DeletionPending")},
		"a job in progress [Yx2]":                                   {"goes on", newStartedItem(phProgressing, pending, withPause), newDueDecision(rec, "InProgress")},
		"a job in progress with force-reconcile [Yx2]":              {"goes on with that action", newStartedItem(phInit, pending, withOperation("force-reconcile"), withPause), newDueDecision(force, "InProgress")},
		"a job in progress of an item that was deleted later [Yx2]": {"a deletion is another run", newStartedItem(phProgressing, pending, gone, withPause), newBlockedDecision(del)},
		"a job held at its deadline [Yx2]":                          {"it ends without a call", newStartedItem(phProgressing, withJob("b", "a", -60), withLastReconcileTime(-60), gone, withPause), over},
		"a deletion in progress [Yx2]":                              {"goes on", newStartedItem(phDeleting, pending, gone, withPause), newDueDecision(del, "InProgress")},
		"a deletion that began [Yx2]":                               {"goes on", newStartedItem(phInitDelete, pending, gone, withPause), newDueDecision(del, "InProgress")},
		"a background run in progress [Yx2]":                        {"goes on", newStartedItem(phSucceeded, finished, withPendingBackground(-1), withPause), withBackground(newDueDecision(rec, "BackgroundOwed"))},
		"an abort [Yx2]":                                            {"is obeyed", newStartedItem(phProgressing, pending, withOperation("abort"), withPause), newDueDecision(abort, "InProgress")},
		"an abort of a new job [Yx2]":                               {"is obeyed", newItem(withJob("a", "", -1), withOperation("abort"), withPause), newStartDecision(abort, "NewJob")},
		"a job that Landscaper interrupted [Yx2]":                   {"Landscaper ended the job", newStartedItem(phFailed, finished, withPause), newPausedDecision(rec, "Finished")},
	})
}

// TestMarkPaused checks that the condition is set when the pause holds back a run, and removed when the annotation is
// removed.
func TestMarkPaused(t *testing.T) {
	t.Parallel()
	shown := func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, newCondition(contract.ConditionPaused, "True", -5))
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want lsv1alpha1.ConditionStatus // "" if the condition must be absent
		same bool
	}{
		"a run is held back [Yx2]":                     {newStartedItem(phSucceeded, withGeneration(4), withPause), "True", false},
		"another run is held back later [Yx2]":         {newStartedItem(phSucceeded, withGeneration(4), withPause, shown), "True", true},
		"no run is held back [Yx2]":                    {newStartedItem(phSucceeded, withPause), "", true},
		"no run is held back any more [Yx2]":           {newStartedItem(phSucceeded, withPause, shown), "True", true},
		"a run in progress continues [Yx2]":            {newStartedItem(phProgressing, withPause), "", true},
		"the pause ends with a due run [Yx2]":          {newStartedItem(phSucceeded, withGeneration(4), shown), "", false},
		"the pause ends with nothing to do [Yx2]":      {newStartedItem(phSucceeded, shown), "", false},
		"the pause ends and the item is ignored [Yx2]": {newStartedItem(phSucceeded, shown, withAnnotation(lsv1alpha1.IgnoreAnnotation, "true")), "True", true},
		"nil": {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.di.DeepCopy()
			d := contract.Evaluate(tc.di, newAnnotationOptions())
			if got := contract.HasPausedCondition(tc.di, d); got != tc.same {
				t.Errorf("HasPausedCondition = %t, want %t", got, tc.same)
			}
			contract.MarkPaused(tc.di, d, epoch)
			if same := cmp.Equal(before, tc.di); same != tc.same {
				t.Errorf("unchanged = %t, want %t", same, tc.same)
			}
			if tc.di == nil {
				return
			}
			status := lsv1alpha1.ConditionStatus("")
			if c := contract.GetCondition(tc.di.Status.Conditions, contract.ConditionPaused); c != nil {
				status = c.Status
			}
			if status != tc.want {
				t.Errorf("condition is %q, want %q", status, tc.want)
			}
			if !contract.HasPausedCondition(tc.di, d) {
				t.Error("a second write would follow")
			}
		})
	}
}

// togglePause begins or ends a pause.
func (w *simulation) togglePause() {
	if contract.IsPaused(w.di) {
		delete(w.di.Annotations, contract.PausedAnnotation)
		return
	}
	withPause(w.di)
}

// checkPause requires that no action except an abort begins on a paused item [Yx2].
func (w *simulation) checkPause(d contract.Decision) {
	if contract.IsPaused(w.di) && d.Action != contract.ActionAbort && (d.New || d.Due && d.Background && w.getPendingBackground() == nil) {
		w.fail("a run begins on a paused item: %+v", d)
	}
}

// getPendingBackground returns the condition of a pending background run, or nil if no background run is pending.
func (w *simulation) getPendingBackground() *lsv1alpha1.Condition {
	c := contract.GetCondition(w.di.Status.Conditions, contract.ConditionBackground)
	if c == nil || c.Status != lsv1alpha1.ConditionTrue {
		return nil
	}
	return c
}
