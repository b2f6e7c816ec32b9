// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// deletion maps the name of each revision to a test case. The field `changes` contains the changes that turn a new item
// into an item that was deployed and whose deletion was requested. The field `failed` contains the phase that the item
// must have after the deletion has failed.
var deletion = map[string]struct {
	changes []itemOption
	failed  lsv1alpha1.DeployItemPhase
}{
	"annotation": {[]itemOption{withFinishedRun(phases.Succeeded), withTarget, withDeletionNow}, phases.Failed},
	"jobID":      {[]itemOption{withFinishedJob("1", phases.Succeeded), withNextJob, withTarget, withDeletionNow}, phases.DeleteFailed},
}

func withDeletionNow(di *lsv1alpha1.DeployItem) {
	di.DeletionTimestamp = newTime(0)
	di.Generation++
}

// withNextJob requests job 2.
func withNextJob(di *lsv1alpha1.DeployItem) {
	di.Status.JobID, di.Status.JobIDGenerationTime = "2", newTime(0)
}

func TestDeletionWithoutTarget(t *testing.T) {
	for revision, tc := range deletion {
		t.Run(revision+": a missing target is reported at once, and the deletion fails after the grace period [F63]", func(t *testing.T) {
			w := newTestEnv(t, newItems(tc.changes...))
			ended := w.runAttempt()
			s := w.getItem().Status
			if s.LastError == nil || !strings.Contains(s.LastError.Message, `target "target" not found`) || contract.IsFinal(s.Phase) {
				t.Fatalf("after the first pass: phase %q, lastError %+v", s.Phase, s.LastError)
			}
			if ended.Queue.RequeueAfter <= 0 {
				t.Errorf("queue %s", ended.Queue.RequeueAfter)
			}
			w.reconcileUntil(deployerlib.DefaultMissingTargetGrace - 2*time.Second)
			if s := w.getItem().Status; contract.IsFinal(s.Phase) {
				t.Errorf("phase %q although the grace period is not over", s.Phase)
			}
			w.reconcileUntil(4 * time.Second)
			s = w.getItem().Status
			if s.Phase != tc.failed || s.JobIDFinished != s.JobID {
				t.Errorf("after the grace period: phase %q, job %q, finished job %q", s.Phase, s.JobID, s.JobIDFinished)
			}
			if s.LastError == nil || !strings.Contains(s.LastError.Message, `target "target" not found`) || s.LastError.Reason != "TargetNotFound" {
				t.Errorf("lastError %+v", s.LastError)
			}
			w.expectCalls()
		})
		t.Run(revision+": the deletion continues when the target exists again in time, also after a restart [F63]", func(t *testing.T) {
			w := newTestEnv(t, newItems(tc.changes...))
			w.runAttempt()
			w.reconcileUntil(5 * time.Second)
			w.startNewEngine()
			if err := w.client.Create(t.Context(), newTarget("any")); err != nil {
				t.Fatal(err)
			}
			w.runAttempt()
			w.expectCalls(contract.ActionDelete)
			if w.getItem() != nil {
				t.Error("the item is still there")
			}
		})
		t.Run(revision+": a restart does not extend the grace period [F63]", func(t *testing.T) {
			w := newTestEnv(t, newItems(tc.changes...))
			w.runAttempt()
			w.clock.Step(deployerlib.DefaultMissingTargetGrace)
			w.startNewEngine()
			w.runAttempt()
			if s := w.getItem().Status; s.Phase != tc.failed {
				t.Errorf("phase = %q, want %q", s.Phase, tc.failed)
			}
		})
		t.Run(revision+": the grace period starts when the target is removed [F63]", func(t *testing.T) {
			w := newTestEnv(t, append(newItems(tc.changes...), newTarget("any")), withArgs(func(args *deployerlib.DeployerArgs) { args.MissingTargetGrace = time.Minute }))
			w.fake.SetDefaultAnswer(contract.ActionDelete, landscapertest.ReturnWaitFor("the children", time.Second))
			w.runAttempt()
			w.clock.Step(5 * time.Minute)
			if err := w.client.Delete(t.Context(), newTarget("any")); err != nil {
				t.Fatal(err)
			}
			w.runAttempt()
			w.reconcileUntil(50 * time.Second)
			if s := w.getItem().Status; contract.IsFinal(s.Phase) {
				t.Errorf("phase = %q, want a phase that is not final", s.Phase)
			}
			w.reconcileUntil(15 * time.Second)
			if s := w.getItem().Status; s.Phase != tc.failed {
				t.Errorf("phase = %q, want %q", s.Phase, tc.failed)
			}
		})
	}
	t.Run("a deployment keeps waiting for its target [F63]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), withTarget))
		w.reconcileUntil(2 * time.Minute)
		if s := w.getItem().Status; contract.IsFinal(s.Phase) || s.LastError == nil {
			t.Errorf("phase %q, lastError %+v, want a lastError and a phase that is not final", s.Phase, s.LastError)
		}
	})
}

func TestAbortKeepsReason(t *testing.T) {
	for name, start := range map[string]itemOption{"annotation": withOperation(lsv1alpha1.ReconcileOperation), "jobID": withJob("1")} {
		t.Run(name+": the last known reason survives an abort [F64]", func(t *testing.T) {
			for want, script := range map[string]landscapertest.Answer{
				"Deployment.apps a/b: is not ready": landscapertest.ReturnWaitFor("Deployment.apps a/b: is not ready", time.Minute),
				"boom":                              landscapertest.ReturnError(errBoom),
			} {
				w := newTestEnv(t, newItems(start))
				w.fake.SetDefaultAnswer(contract.ActionReconcile, script)
				w.runAttempt()
				w.updateItem(withOperation(contract.AbortOperation))
				w.runAttempt()
				s := w.getItem().Status
				if s.Phase != phases.Failed || s.LastError == nil || s.LastError.Message != "the run was aborted; last error: "+want {
					t.Errorf("phase %q, lastError %+v, want phase Failed and the reason %q", s.Phase, s.LastError, want)
				}
			}
		})
	}
}
