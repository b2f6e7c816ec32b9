// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

func background(d contract.Decision) contract.Decision {
	d.Background = true
	return d
}

func TestEvaluateJob(t *testing.T) {
	t.Parallel()
	rec, del := contract.ActionReconcile, contract.ActionDelete
	pending := job("b", "a", -5)
	gone := func(di *lsv1alpha1.DeployItem) { deleted(-6)(di); finalizer(di) }
	unchanged := begin(rec, "Unchanged")
	unchanged.Unchanged = true
	withForce := begin(contract.ActionForceReconcile, "NewJob")
	runDecisions(t, jobOptions(), map[string]decisionCase{
		"new job of a finished item [C3]":                                          {"IDs differ", ran(phSucceeded, pending, reconciled(-9)), begin(rec, "NewJob")},
		"first job of an item [C3]":                                                {"never run", item(job("a", "", -1)), begin(rec, "NewJob")},
		"finished job [C8]":                                                        {"IDs are equal", ran(phSucceeded, job("a", "a", -6)), background(rest(rec, "Finished", true))},
		"item without a job [C8]":                                                  {"a hand-made item is never processed", item(), rest(rec, "NeverRun", false)},
		"item without a job that finished an earlier job":                          {"an empty ID asks for nothing", ran(phSucceeded, job("", "a", -6)), background(rest(rec, "Finished", true))},
		"restart of the deployer after the start of a job [C14]":                   {"goes on with the same job", ran(phInit, pending), due(rec, "InProgress")},
		"restart of the deployer during a job [C14]":                               {"goes on with the same job", ran(phProgressing, pending), due(rec, "InProgress")},
		"job that started within the second in which it was created [C14]":         {"whole seconds", ran(phInit, pending, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = ref(at(-5).Add(900e6)) }), due(rec, "InProgress")},
		"phase of an earlier run":                                                  {"the job was handed out later", ran(phProgressing, pending, reconciled(-6)), begin(rec, "NewJob")},
		"job without a generation time":                                            {"counts as started", ran(phProgressing, pending, func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }), due(rec, "InProgress")},
		"job without any time [C-11] [H-3]":                                        {"its deadline would be unknown", item(phased(phProgressing), job("b", "a", 0), func(di *lsv1alpha1.DeployItem) { di.Status.JobIDGenerationTime = nil }), begin(rec, "NewJob")},
		"unknown phase":                                                            {"not started", ran(phUnknown, pending), begin(rec, "NewJob")},
		"new generation without a job [C3]":                                        {"only the job counts", ran(phSucceeded, job("a", "a", -6), generation(9)), rest(rec, "GenerationMoved", false)},
		"operation reconcile [C3]":                                                 {"not used, not removed", ran(phSucceeded, job("a", "a", -6), op("reconcile"), note(keyReconcile, "x")), background(rest(rec, "Finished", true))},
		"deletion waits for its job [C13]":                                         {"jobs come in dependency order", ran(phSucceeded, job("a", "a", -6), gone), rest(del, "DeletionPending", false)},
		"deletion with its job [C13]":                                              {"now", ran(phSucceeded, pending, gone), begin(del, "NewJob")},
		"deletion in progress [C14]":                                               {"started", ran(phDeleting, pending, gone), due(del, "InProgress")},
		"updateOnChangeOnly without a change [C15]":                                {"finished without a call", ran(phSucceeded, pending, updateOnChange), unchanged},
		"updateOnChangeOnly with a change [C15]":                                   {"spec changed", ran(phSucceeded, pending, updateOnChange, generation(4)), begin(rec, "NewJob")},
		"updateOnChangeOnly of a failed item [C15]":                                {"has to be repaired", ran(phFailed, pending, updateOnChange), begin(rec, "NewJob")},
		"updateOnChangeOnly of a deleted item [C15]":                               {"has to go", ran(phSucceeded, pending, updateOnChange, gone), begin(del, "NewJob")},
		"updateOnChangeOnly with force-reconcile [C15]":                            {"the user insists", ran(phSucceeded, pending, updateOnChange, op("force-reconcile")), withForce},
		"force-reconcile during a job":                                             {"of an unfinished job", ran(phProgressing, pending, op("force-reconcile")), due(contract.ActionForceReconcile, "InProgress")},
		"abort during a job [C4]":                                                  {"honoured under job ID too", ran(phProgressing, pending, op("abort")), due(contract.ActionAbort, "InProgress")},
		"late abort before a new job [C-7]":                                        {"consumed, then the job runs", ran(phFailed, pending, op("abort")), begin(rec, "NewJob", keyOp)},
		"abort of a finished job [Lx7]":                                            {"consumed", ran(phSucceeded, job("a", "a", -6), op("abort"), note(keyAbort, "x")), background(rest(rec, "Finished", true, keyOp, keyAbort))},
		"test-reconcile during a job [C15]":                                        {"only removed", ran(phInit, pending, op("test-reconcile")), due(rec, "InProgress", keyOp)},
		"test-reconcile with a new job [C15]":                                      {"only removed", ran(phSucceeded, pending, op("test-reconcile")), begin(rec, "NewJob", keyOp)},
		"job that Landscaper ended after the pickup timeout, without times [C-11]": {"Landscaper failed it, no lastReconcileTime", item(phased(phFailed), observed(3), job("a", "a", -9)), background(rest(rec, "Finished", true))},
		"job that was created in the phase Deleting":                               {"an older deletion", ran(phDeleting, pending, reconciled(-9), gone), begin(del, "NewJob")},
		"finished job with a phase that is not final [atomicity]":                  {"it must not run in the background", ran(phInit, job("a", "a", -9)), rest(rec, "NotFinal", false)},
	})
}

func TestEvaluateTestReconcile(t *testing.T) {
	t.Parallel()
	fresh := begin(contract.ActionReconcile, "Operation", keyOp)
	fresh.NewJob = true
	deletes := fresh
	deletes.Action = contract.ActionDelete
	runDecisions(t, jobOptions(), map[string]decisionCase{
		"test-reconcile of a finished item [C15]":       {"a job of its own", ran(phSucceeded, job("a", "a", -9), op("test-reconcile")), fresh},
		"test-reconcile of an item without a run [C15]": {"a job of its own", item(op("test-reconcile")), fresh},
		"test-reconcile of a deleted item [C15]":        {"deletes", ran(phSucceeded, job("a", "a", -9), op("test-reconcile"), deleted(-1), finalizer), deletes},
		"test-reconcile with updateOnChangeOnly [C15]":  {"is not asked", ran(phSucceeded, job("a", "a", -9), op("test-reconcile"), updateOnChange), fresh},
	})
}

func TestEvaluateBackgroundRun(t *testing.T) {
	t.Parallel()
	rec, force := contract.ActionReconcile, contract.ActionForceReconcile
	done := job("a", "a", -9)
	forced := op("force-reconcile")
	runDecisions(t, jobOptions(), map[string]decisionCase{
		"pending background run":                                                    {"tried again, after a restart too", ran(phSucceeded, done, owed(-1)), background(due(rec, "BackgroundOwed"))},
		"pending background run of a failed item":                                   {"schedule and force may", ran(phFailed, done, owed(-1)), background(due(rec, "BackgroundOwed"))},
		"pending background run and a new job":                                      {"the job wins", ran(phSucceeded, job("b", "a", 0), owed(-1)), begin(rec, "NewJob")},
		"pending background run and a new generation":                               {"the job is still to come", ran(phSucceeded, done, owed(-1), generation(4)), rest(rec, "GenerationMoved", false)},
		"pending background run of a deleted item":                                  {"never ahead of its dependants", ran(phSucceeded, done, owed(-1), deleted(-1), finalizer), rest(contract.ActionDelete, "DeletionPending", false)},
		"force-reconcile of a finished item [Lx7]":                                  {"the user asks", ran(phSucceeded, done, forced), background(due(force, "BackgroundForced"))},
		"force-reconcile of an item without an Execution and with a new generation": {"Landscaper creates no job without an Execution", ran(phSucceeded, done, forced, generation(4)), background(due(force, "BackgroundForced"))},
		"force-reconcile of an item of an Execution with a new generation":          {"its job is still to come", ran(phSucceeded, done, forced, generation(4), managed), rest(force, "GenerationMoved", false)},
		"force-reconcile of an item without a run":                                  {"refused", item(forced), rest(force, "NeverRun", false)},
		"force-reconcile of a deleted item":                                         {"refused", ran(phSucceeded, done, forced, deleted(-1), finalizer), rest(force, "DeletionPending", false)},
		"background run with the condition False": {"nothing owed", ran(phSucceeded, done, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{cond(contract.ConditionBackground, lsv1alpha1.ConditionFalse, -1)}
		}), background(rest(rec, "Finished", true))},
		"background run with the condition Unknown": {"a hook failed, no run is owed", ran(phSucceeded, done, func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{cond(contract.ConditionBackground, lsv1alpha1.ConditionUnknown, -1)}
		}), background(rest(rec, "Finished", true))},
	})
}
