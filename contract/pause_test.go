// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// held returns the decision for a paused item for which the action a would otherwise be due.
func held(a contract.Action, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Paused: true, Held: true, Reason: "Paused", Remove: remove}
}

// quiet returns the decision for a paused item for which no run would be due.
func quiet(a contract.Action, why contract.Reason, remove ...string) contract.Decision {
	return contract.Decision{Action: a, Paused: true, Reason: why, Remove: remove}
}

func TestEvaluatePausedAnnotationItem(t *testing.T) {
	t.Parallel()
	rec, del, force, abort := contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile, contract.ActionAbort
	goneBefore := func(di *lsv1alpha1.DeployItem) { deleted(-6)(di); finalizer(di) } // the deletion was requested before the last run began
	goneSince := func(di *lsv1alpha1.DeployItem) { deleted(-1)(di); finalizer(di) }
	runDecisions(t, annotated(), map[string]decisionCase{
		"a new item [Yx2]":                                          {"nothing begins", item(paused), held(rec)},
		"a new generation [Yx2]":                                    {"nothing begins", ran(phSucceeded, paused, generation(4)), held(rec)},
		"the operation reconcile [Yx2]":                             {"it stays asked for", ran(phSucceeded, paused, op("reconcile"), note(keyReconcile, "x")), held(rec)},
		"force-reconcile [Yx2]":                                     {"it stays asked for", ran(phSucceeded, paused, op("force-reconcile")), held(force)},
		"a deletion [Yx2]":                                          {"nothing is deleted", ran(phSucceeded, paused, goneSince), held(del)},
		"a deletion without uninstall [Yx2]":                        {"the item stays, too", ran(phSucceeded, paused, goneSince, note(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")), held(del)},
		"an item with nothing to do [Yx2]":                          {"no hook may force a run", ran(phSucceeded, paused), quiet(rec, "Finished")},
		"a late abort [Yx2]":                                        {"is consumed", ran(phSucceeded, paused, op("abort")), quiet(rec, "Finished", keyOp)},
		"a run in progress [Yx2]":                                   {"goes on", ran(phProgressing, paused), due(rec, "InProgress")},
		"a run in progress with force-reconcile [Yx2]":              {"goes on with that action", ran(phProgressing, paused, op("force-reconcile")), due(force, "InProgress")},
		"a run in progress with a new generation [Yx2]":             {"the old one goes on", ran(phProgressing, paused, generation(4)), due(rec, "InProgress")},
		"a run in progress with the operation reconcile [Yx2]":      {"the old one goes on, the operation stays", ran(phProgressing, paused, op("reconcile")), due(rec, "Operation")},
		"a run in progress of an item that was deleted later [Yx2]": {"a deletion is another run", ran(phProgressing, paused, goneSince, generation(4)), held(del)},
		"a deletion in progress [Yx2]":                              {"goes on", ran(phInit, paused, goneBefore), due(del, "InProgress")},
		"a phase of a run that never started [Yx2]":                 {"it would begin", item(phased(phProgressing), observed(3), paused), held(rec)},
		"an abort [Yx2]":                                            {"is obeyed", ran(phProgressing, paused, op("abort")), due(abort, "InProgress")},
		"an abort before a deletion [Yx2]":                          {"is obeyed", ran(phProgressing, paused, op("abort"), goneSince, generation(4)), due(abort, "InProgress")},
		"an annotation with another value":                          {"only true counts", ran(phSucceeded, note(contract.PausedAnnotation, "yes"), generation(4)), begin(rec, "Generation")},
		"ignored":                                                   {"ignore says more", ran(phSucceeded, paused, note(lsv1alpha1.IgnoreAnnotation, "true"), generation(4)), contract.Decision{Reason: "Ignored"}},
	})
}

func TestEvaluatePausedJob(t *testing.T) {
	t.Parallel()
	rec, del, force, abort := contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile, contract.ActionAbort
	pending, finished := job("b", "a", -5), job("a", "a", -6)
	gone := func(di *lsv1alpha1.DeployItem) { deleted(-6)(di); finalizer(di) }
	over := due(del, "InProgress")
	over.Expired = true
	runDecisions(t, jobOptions(), map[string]decisionCase{
		"a new job [Yx2]":                                           {"it waits", ran(phSucceeded, pending, reconciled(-9), paused), held(rec)},
		"a first job [Yx2]":                                         {"it waits", item(job("a", "", -1), paused), held(rec)},
		"a job without a change [Yx2]":                              {"it is not even finished", ran(phSucceeded, pending, updateOnChange, paused), held(rec)},
		"a job that deletes [Yx2]":                                  {"nothing is deleted", ran(phSucceeded, pending, gone, paused), held(del)},
		"a job with test-reconcile [Yx2]":                           {"the operation stays", ran(phSucceeded, pending, op("test-reconcile"), paused), held(rec)},
		"test-reconcile [Yx2]":                                      {"it stays asked for", ran(phSucceeded, finished, op("test-reconcile"), paused), held(rec)},
		"force-reconcile [Yx2]":                                     {"no background run begins", ran(phSucceeded, finished, op("force-reconcile"), paused), held(force)},
		"an item with nothing to do [Yx2]":                          {"no hook may force a run", ran(phSucceeded, finished, paused), quiet(rec, "Finished")},
		"a deletion without its job [Yx2]":                          {"nothing is held back", ran(phSucceeded, finished, gone, paused), quiet(del, "DeletionPending")},
		"a job in progress [Yx2]":                                   {"goes on", ran(phProgressing, pending, paused), due(rec, "InProgress")},
		"a job in progress with force-reconcile [Yx2]":              {"goes on with that action", ran(phInit, pending, op("force-reconcile"), paused), due(force, "InProgress")},
		"a job in progress of an item that was deleted later [Yx2]": {"a deletion is another run", ran(phProgressing, pending, gone, paused), held(del)},
		"a job held at its deadline [Yx2]":                          {"it ends without a call", ran(phProgressing, job("b", "a", -60), reconciled(-60), gone, paused), over},
		"a deletion in progress [Yx2]":                              {"goes on", ran(phDeleting, pending, gone, paused), due(del, "InProgress")},
		"a deletion that began [Yx2]":                               {"goes on", ran(phInitDelete, pending, gone, paused), due(del, "InProgress")},
		"a background run in progress [Yx2]":                        {"goes on", ran(phSucceeded, finished, owed(-1), paused), background(due(rec, "BackgroundOwed"))},
		"an abort [Yx2]":                                            {"is obeyed", ran(phProgressing, pending, op("abort"), paused), due(abort, "InProgress")},
		"an abort of a new job [Yx2]":                               {"is obeyed", item(job("a", "", -1), op("abort"), paused), begin(abort, "NewJob")},
		"a job that Landscaper interrupted [Yx2]":                   {"Landscaper ended the job", ran(phFailed, finished, paused), quiet(rec, "Finished")},
	})
}

// TestMarkPaused checks that the condition is set when the pause holds back a run, and removed when the annotation is
// removed.
func TestMarkPaused(t *testing.T) {
	t.Parallel()
	shown := func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, cond(contract.ConditionPaused, "True", -5))
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want lsv1alpha1.ConditionStatus // "" if the condition must be absent
		same bool
	}{
		"a run is held back [Yx2]":                     {ran(phSucceeded, generation(4), paused), "True", false},
		"another run is held back later [Yx2]":         {ran(phSucceeded, generation(4), paused, shown), "True", true},
		"no run is held back [Yx2]":                    {ran(phSucceeded, paused), "", true},
		"no run is held back any more [Yx2]":           {ran(phSucceeded, paused, shown), "True", true},
		"a run in progress continues [Yx2]":            {ran(phProgressing, paused), "", true},
		"the pause ends with a due run [Yx2]":          {ran(phSucceeded, generation(4), shown), "", false},
		"the pause ends with nothing to do [Yx2]":      {ran(phSucceeded, shown), "", false},
		"the pause ends and the item is ignored [Yx2]": {ran(phSucceeded, shown, note(lsv1alpha1.IgnoreAnnotation, "true")), "True", true},
		"nil": {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.di.DeepCopy()
			d := contract.Evaluate(tc.di, annotated())
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

// pause begins or ends a pause.
func (w *world) pause() {
	if contract.IsPaused(w.di) {
		delete(w.di.Annotations, contract.PausedAnnotation)
		return
	}
	paused(w.di)
}

// checkPause requires that no action except an abort begins on a paused item [Yx2].
func (w *world) checkPause(d contract.Decision) {
	if contract.IsPaused(w.di) && d.Action != contract.ActionAbort && (d.New || d.Due && d.Background && w.owes() == nil) {
		w.fail("a run begins on a paused item: %+v", d)
	}
}

// owes returns the condition of a pending background run, or nil if no background run is pending.
func (w *world) owes() *lsv1alpha1.Condition {
	c := contract.GetCondition(w.di.Status.Conditions, contract.ConditionBackground)
	if c == nil || c.Status != lsv1alpha1.ConditionTrue {
		return nil
	}
	return c
}
