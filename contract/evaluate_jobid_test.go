// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func withBackground(d contract.Decision) contract.Decision {
	d.Background = true
	return d
}

func TestEvaluateJob(t *testing.T) {
	t.Parallel()
	rec, del := contract.ActionReconcile, contract.ActionDelete
	pending := withJob("b", "a", -5)
	gone := func(di *lsv1alpha1.DeployItem) { withDeletionTime(-6)(di); withFinalizer(di) }
	unchanged := newStartDecision(rec, "Unchanged")
	unchanged.Unchanged = true
	withForce := newStartDecision(contract.ActionForceReconcile, "NewJob")
	runDecisions(t, newJobOptions(), map[string]decisionCase{
		"new job of a finished item [C3]":                                          {"IDs differ", newStartedItem(phSucceeded, pending, withLastReconcileTime(-9)), newStartDecision(rec, "NewJob")},
		"first job of an item [C3]":                                                {"never run", newItem(withJob("a", "", -1)), newStartDecision(rec, "NewJob")},
		"finished job [C8]":                                                        {"IDs are equal", newStartedItem(phSucceeded, withJob("a", "a", -6)), withBackground(newIdleDecision(rec, "Finished", true))},
		"item without a job [C8]":                                                  {"a hand-made item is never processed", newItem(), newIdleDecision(rec, "NeverRun", false)},
		"item without a job that finished an earlier job":                          {"an empty ID asks for nothing", newStartedItem(phSucceeded, withJob("", "a", -6)), withBackground(newIdleDecision(rec, "Finished", true))},
		"restart of the deployer after the start of a job [C14]":                   {"goes on with the same job", newStartedItem(phInit, pending), newDueDecision(rec, "InProgress")},
		"restart of the deployer during a job [C14]":                               {"goes on with the same job", newStartedItem(phProgressing, pending), newDueDecision(rec, "InProgress")},
		"job that started within the second in which it was created [C14]":         {"whole seconds", newStartedItem(phInit, pending, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = ptrTo(afterMinutes(-5).Add(900e6)) }), newDueDecision(rec, "InProgress")},
		"phase of an earlier run":                                                  {"the job was handed out later", newStartedItem(phProgressing, pending, withLastReconcileTime(-6)), newStartDecision(rec, "NewJob")},
		"job without a generation time":                                            {"counts as started", newStartedItem(phProgressing, pending, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }), newDueDecision(rec, "InProgress")},
		"job without any time [C-11] [H-3]":                                        {"its deadline would be unknown", newItem(withPhase(phProgressing), withJob("b", "a", 0), func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }), newStartDecision(rec, "NewJob")},
		"unknown phase":                                                            {"not started", newStartedItem(phUnknown, pending), newStartDecision(rec, "NewJob")},
		"new generation without a job [C3]":                                        {"only the job counts", newStartedItem(phSucceeded, withJob("a", "a", -6), withGeneration(9)), newIdleDecision(rec, "GenerationMoved", false)},
		"operation reconcile [C3]":                                                 {"not used, not removed", newStartedItem(phSucceeded, withJob("a", "a", -6), withOperation("reconcile"), withAnnotation(keyReconcile, "x")), withBackground(newIdleDecision(rec, "Finished", true))},
		"deletion waits for its job [C13]":                                         {"jobs come in dependency order", newStartedItem(phSucceeded, withJob("a", "a", -6), gone), newIdleDecision(del, "DeletionPending", false)},
		"deletion with its job [C13]":                                              {"now", newStartedItem(phSucceeded, pending, gone), newStartDecision(del, "NewJob")},
		"deletion in progress [C14]":                                               {"started", newStartedItem(phDeleting, pending, gone), newDueDecision(del, "InProgress")},
		"updateOnChangeOnly without a change [C15]":                                {"finished without a call", newStartedItem(phSucceeded, pending, withUpdateOnChangeOnly), unchanged},
		"updateOnChangeOnly with a change [C15]":                                   {"spec changed", newStartedItem(phSucceeded, pending, withUpdateOnChangeOnly, withGeneration(4)), newStartDecision(rec, "NewJob")},
		"updateOnChangeOnly of a failed item [C15]":                                {"has to be repaired", newStartedItem(phFailed, pending, withUpdateOnChangeOnly), newStartDecision(rec, "NewJob")},
		"updateOnChangeOnly of a deleted item [C15]":                               {"has to go", newStartedItem(phSucceeded, pending, withUpdateOnChangeOnly, gone), newStartDecision(del, "NewJob")},
		"updateOnChangeOnly with force-reconcile [C15]":                            {"the user insists", newStartedItem(phSucceeded, pending, withUpdateOnChangeOnly, withOperation("force-reconcile")), withForce},
		"force-reconcile during a job":                                             {"of an unfinished job", newStartedItem(phProgressing, pending, withOperation("force-reconcile")), newDueDecision(contract.ActionForceReconcile, "InProgress")},
		"abort during a job [C4]":                                                  {"honoured under job ID too", newStartedItem(phProgressing, pending, withOperation("abort")), newDueDecision(contract.ActionAbort, "InProgress")},
		"late abort before a new job [C-7]":                                        {"consumed, then the job runs", newStartedItem(phFailed, pending, withOperation("abort")), newStartDecision(rec, "NewJob", keyOp)},
		"abort of a finished job [Lx7]":                                            {"consumed", newStartedItem(phSucceeded, withJob("a", "a", -6), withOperation("abort"), withAnnotation(keyAbort, "x")), withBackground(newIdleDecision(rec, "Finished", true, keyOp, keyAbort))},
		"test-reconcile during a job [C15]":                                        {"only removed", newStartedItem(phInit, pending, withOperation("test-reconcile")), newDueDecision(rec, "InProgress", keyOp)},
		"test-reconcile with a new job [C15]":                                      {"only removed", newStartedItem(phSucceeded, pending, withOperation("test-reconcile")), newStartDecision(rec, "NewJob", keyOp)},
		"job that Landscaper ended after the pickup timeout, without times [C-11]": {"Landscaper failed it, no lastReconcileTime", newItem(withPhase(phFailed), withObservedGeneration(3), withJob("a", "a", -9)), withBackground(newIdleDecision(rec, "Finished", true))},
		"job that was created in the phase Deleting":                               {"an older deletion", newStartedItem(phDeleting, pending, withLastReconcileTime(-9), gone), newStartDecision(del, "NewJob")},
		"finished job with a phase that is not final [atomicity]":                  {"it must not run in the background", newStartedItem(phInit, withJob("a", "a", -9)), newIdleDecision(rec, "NotFinal", false)},
	})
}

func TestEvaluateTestReconcile(t *testing.T) {
	t.Parallel()
	fresh := newStartDecision(contract.ActionReconcile, "Operation", keyOp)
	fresh.NewJob = true
	deletes := fresh
	deletes.Action = contract.ActionDelete
	runDecisions(t, newJobOptions(), map[string]decisionCase{
		"test-reconcile of a finished item [C15]":       {"a job of its own", newStartedItem(phSucceeded, withJob("a", "a", -9), withOperation("test-reconcile")), fresh},
		"test-reconcile of an item without a run [C15]": {"a job of its own", newItem(withOperation("test-reconcile")), fresh},
		"test-reconcile of a deleted item [C15]":        {"deletes", newStartedItem(phSucceeded, withJob("a", "a", -9), withOperation("test-reconcile"), withDeletionTime(-1), withFinalizer), deletes},
		"test-reconcile with updateOnChangeOnly [C15]":  {"is not asked", newStartedItem(phSucceeded, withJob("a", "a", -9), withOperation("test-reconcile"), withUpdateOnChangeOnly), fresh},
	})
}

func TestEvaluateBackgroundRun(t *testing.T) {
	t.Parallel()
	rec, force := contract.ActionReconcile, contract.ActionForceReconcile
	done := withJob("a", "a", -9)
	forced := withOperation("force-reconcile")
	runDecisions(t, newJobOptions(), map[string]decisionCase{
		"pending background run":                                                    {"tried again, after a restart too", newStartedItem(phSucceeded, done, withPendingBackground(-1)), withBackground(newDueDecision(rec, "BackgroundOwed"))},
		"pending background run of a failed item":                                   {"schedule and force may", newStartedItem(phFailed, done, withPendingBackground(-1)), withBackground(newDueDecision(rec, "BackgroundOwed"))},
		"pending background run and a new job":                                      {"the job wins", newStartedItem(phSucceeded, withJob("b", "a", 0), withPendingBackground(-1)), newStartDecision(rec, "NewJob")},
		"pending background run and a new generation":                               {"the job is still to come", newStartedItem(phSucceeded, done, withPendingBackground(-1), withGeneration(4)), newIdleDecision(rec, "GenerationMoved", false)},
		"pending background run of a deleted item":                                  {"never ahead of its dependants", newStartedItem(phSucceeded, done, withPendingBackground(-1), withDeletionTime(-1), withFinalizer), newIdleDecision(contract.ActionDelete, "DeletionPending", false)},
		"force-reconcile of a finished item [Lx7]":                                  {"the user asks", newStartedItem(phSucceeded, done, forced), withBackground(newDueDecision(force, "BackgroundForced"))},
		"force-reconcile of an item without an Execution and with a new generation": {"Landscaper creates no job without an Execution", newStartedItem(phSucceeded, done, forced, withGeneration(4)), withBackground(newDueDecision(force, "BackgroundForced"))},
		"force-reconcile of an item of an Execution with a new generation":          {"its job is still to come", newStartedItem(phSucceeded, done, forced, withGeneration(4), withManagedLabel), newIdleDecision(force, "GenerationMoved", false)},
		"force-reconcile of an item without a run":                                  {"refused", newItem(forced), newIdleDecision(force, "NeverRun", false)},
		"force-reconcile of a deleted item":                                         {"refused", newStartedItem(phSucceeded, done, forced, withDeletionTime(-1), withFinalizer), newIdleDecision(force, "DeletionPending", false)},
		"background run with the condition False": {"nothing owed", newStartedItem(phSucceeded, done, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, lsv1alpha1.ConditionFalse, -1)}
		}), withBackground(newIdleDecision(rec, "Finished", true))},
		"background run with the condition Unknown": {"a hook failed, no run is owed", newStartedItem(phSucceeded, done, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, lsv1alpha1.ConditionUnknown, -1)}
		}), withBackground(newIdleDecision(rec, "Finished", true))},
	})
}
