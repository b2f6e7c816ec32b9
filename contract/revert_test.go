// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// newChangedStatus returns a status in which every field differs from the same field of every item in these tests.
func newChangedStatus() *lsv1alpha1.DeployItemStatus {
	gone := "gone"
	return &lsv1alpha1.DeployItemStatus{
		Phase: phProgressing, ObservedGeneration: 99,
		Conditions: []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, "False", 9), newCondition("Theirs", "True", 9), newCondition(contract.ConditionWaiting, "True", 9)},
		LastError:  lastErr("X", "x", 9, 9), FirstError: lastErr("X", "x", 9, 9), LastErrors: []*lsv1alpha1.Error{nil},
		LastReconcileTime: ptrAfterMinutes(99), Deployer: lsv1alpha1.DeployerInformation{Name: "x"},
		ProviderStatus: raw(`{"x":1}`), ExportReference: &lsv1alpha1.ObjectReference{Name: "x"},
		JobID: "x", JobIDFinished: "y", JobIDGenerationTime: ptrAfterMinutes(99), DeployerPhase: &gone,
		TransitionTimes: &lsv1alpha1.TransitionTimes{WaitTime: ptrAfterMinutes(99)},
	}
}

func TestMaskAnnotationFields(t *testing.T) {
	t.Parallel()
	before := newStartedItem(phInit, withJob("b", "a", -6), withOldErrors)
	after, want := newChangedStatus(), newChangedStatus()
	b := &before.Status
	want.JobID, want.JobIDFinished, want.JobIDGenerationTime = b.JobID, b.JobIDFinished, b.JobIDGenerationTime
	want.FirstError, want.LastErrors, want.TransitionTimes, want.DeployerPhase = b.FirstError, b.LastErrors, b.TransitionTimes, nil
	contract.RevertForbiddenChanges(contract.RevisionAnnotation, b, after)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	contract.RevertForbiddenChanges(contract.RevisionJobID, nil, after)
	contract.RevertForbiddenChanges(contract.RevisionJobID, b, nil)
}

func TestMaskPhases(t *testing.T) {
	t.Parallel()
	writable := map[contract.Revision][]phase{
		contract.RevisionAnnotation: {phInit, phProgressing, phDeleting, phSucceeded, phFailed},
		contract.RevisionJobID:      {phInit, phProgressing, phDeleting, phInitDelete},
	}
	for r, phases := range writable {
		for _, p := range allPhases {
			before := newStartedItem(phCompleting, withJob("b", "a", -6)).Status
			after := before.DeepCopy()
			after.Phase = p
			contract.RevertForbiddenChanges(r, &before, after)
			want := phCompleting
			if slices.Contains(phases, p) {
				want = p
			}
			if after.Phase != want {
				t.Errorf("%s may store %q: got %q, want %q", r, p, after.Phase, want)
			}
		}
	}
}

// TestMaskJob checks that RevertForbiddenChanges enforces the rules of jobs: a job finishes atomically (a, b), a final phase is not
// written unless the job finishes (c), and only Landscaper changes the ID of an unfinished job (d).
func TestMaskJob(t *testing.T) {
	t.Parallel()
	type status = lsv1alpha1.DeployItemStatus
	pending, done := newStartedItem(phProgressing, withJob("b", "a", -6)), newStartedItem(phSucceeded, withJob("a", "a", -6))
	for name, tc := range map[string]struct {
		before *lsv1alpha1.DeployItem
		change func(*status)
		want   func(*status)
	}{
		"a job may finish with a final phase (a)": {
			pending, func(s *status) { s.Phase, s.JobIDFinished = phDeleteFailed, "b" },
			func(s *status) { s.Phase, s.JobIDFinished = phDeleteFailed, "b" },
		},
		"a job must not finish without a final phase (b)": {pending, func(s *status) { s.JobIDFinished = "b" }, func(*status) {}},
		"a final phase needs a finished job (c)":          {pending, func(s *status) { s.Phase = phSucceeded }, func(*status) {}},
		"another job must not finish (b)":                 {pending, func(s *status) { s.Phase, s.JobIDFinished = phSucceeded, "c" }, func(*status) {}},
		"the ID of an unfinished job must not change (d)": {
			pending, func(s *status) { s.JobID, s.JobIDGenerationTime = "c", ptrAfterMinutes(0) }, func(*status) {},
		},
		"a finished job may get a new ID (d)": {
			done, func(s *status) { s.JobID, s.JobIDGenerationTime, s.Phase = "c", ptrAfterMinutes(0), phInit },
			func(s *status) { s.JobID, s.JobIDGenerationTime, s.Phase = "c", ptrAfterMinutes(0), phInit },
		},
		"the ID of a job must not be removed (d)":                     {done, func(s *status) { s.JobID = "" }, func(*status) {}},
		"the phase of a finished job must not become Progressing (b)": {done, func(s *status) { s.Phase = phProgressing }, func(*status) {}},
		"the final phase of a finished job must not change":           {done, func(s *status) { s.Phase = phFailed }, func(*status) {}},
		"the generation time must not change without the ID":          {pending, func(s *status) { s.JobIDGenerationTime = ptrAfterMinutes(0) }, func(*status) {}},
		"the finished ID must not be removed":                         {done, func(s *status) { s.JobIDFinished = "" }, func(*status) {}},
		"the phase of an unfinished job may change":                   {pending, func(s *status) { s.Phase = phDeleting }, func(s *status) { s.Phase = phDeleting }},
		"other fields of the deployer may change": {pending, func(s *status) {
			s.LastErrors, s.TransitionTimes = newChangedStatus().LastErrors, newChangedStatus().TransitionTimes
		}, func(s *status) {
			s.LastErrors, s.TransitionTimes = newChangedStatus().LastErrors, newChangedStatus().TransitionTimes
		}},
		"the deprecated phase must not change": {pending, func(s *status) { s.DeployerPhase = newChangedStatus().DeployerPhase }, func(*status) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, want := tc.before.Status.DeepCopy(), tc.before.Status.DeepCopy()
			tc.change(after)
			tc.want(want)
			contract.RevertForbiddenChanges(contract.RevisionJobID, &tc.before.Status, after)
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestMaskReturnsCopies checks that restored values are copies.
func TestMaskReturnsCopies(t *testing.T) {
	t.Parallel()
	for _, r := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		before := newStartedItem(phProgressing, withJob("b", "a", -6), withOldErrors).Status
		before.TransitionTimes, before.DeployerPhase = &lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(-5)}, newChangedStatus().DeployerPhase
		want := before.DeepCopy()
		after := before.DeepCopy()
		contract.RevertForbiddenChanges(r, &before, after)
		*after.DeployerPhase, *after.JobIDGenerationTime = "changed", metaAfterMinutes(9)
		after.TransitionTimes.InitTime, after.FirstError.Message = ptrAfterMinutes(9), "changed"
		if diff := cmp.Diff(want, &before); diff != "" {
			t.Errorf("%s: %s", r, diff)
		}
	}
}
