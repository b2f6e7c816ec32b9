// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// vandal returns a status in which every field differs from the same field of every item in these tests.
func vandal() *lsv1alpha1.DeployItemStatus {
	gone := "gone"
	return &lsv1alpha1.DeployItemStatus{
		Phase: phProgressing, ObservedGeneration: 99,
		Conditions: []lsv1alpha1.Condition{cond(contract.ConditionBackground, "False", 9), cond("Theirs", "True", 9), cond(contract.ConditionWaiting, "True", 9)},
		LastError:  lastErr("X", "x", 9, 9), FirstError: lastErr("X", "x", 9, 9), LastErrors: []*lsv1alpha1.Error{nil},
		LastReconcileTime: mt(99), Deployer: lsv1alpha1.DeployerInformation{Name: "x"},
		ProviderStatus: raw(`{"x":1}`), ExportReference: &lsv1alpha1.ObjectReference{Name: "x"},
		JobID: "x", JobIDFinished: "y", JobIDGenerationTime: mt(99), DeployerPhase: &gone,
		TransitionTimes: &lsv1alpha1.TransitionTimes{WaitTime: mt(99)},
	}
}

func TestMaskAnnotationClosedList(t *testing.T) {
	t.Parallel()
	before := ran(phInit, job("b", "a", -6), oldErrors)
	after, want := vandal(), vandal()
	b := &before.Status
	want.JobID, want.JobIDFinished, want.JobIDGenerationTime = b.JobID, b.JobIDFinished, b.JobIDGenerationTime
	want.FirstError, want.LastErrors, want.TransitionTimes, want.DeployerPhase = b.FirstError, b.LastErrors, b.TransitionTimes, nil
	contract.Mask(contract.RevisionAnnotation, b, after)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	contract.Mask(contract.RevisionJobID, nil, after)
	contract.Mask(contract.RevisionJobID, b, nil)
}

func TestMaskPhases(t *testing.T) {
	t.Parallel()
	writable := map[contract.Revision][]phase{
		contract.RevisionAnnotation: {phInit, phProgressing, phDeleting, phSucceeded, phFailed},
		contract.RevisionJobID:      {phInit, phProgressing, phDeleting, phInitDelete},
	}
	for r, phases := range writable {
		for _, p := range all {
			before := ran(phCompleting, job("b", "a", -6)).Status
			after := before.DeepCopy()
			after.Phase = p
			contract.Mask(r, &before, after)
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

// TestMaskJob checks that Mask enforces the rules of jobs: a job finishes atomically (a, b), a final phase is not
// written unless the job finishes (c), and only Landscaper changes the ID of an unfinished job (d).
func TestMaskJob(t *testing.T) {
	t.Parallel()
	type status = lsv1alpha1.DeployItemStatus
	pending, done := ran(phProgressing, job("b", "a", -6)), ran(phSucceeded, job("a", "a", -6))
	for name, tc := range map[string]struct {
		before *lsv1alpha1.DeployItem
		change func(*status)
		want   func(*status)
	}{
		"a finish passes (a)": {
			pending, func(s *status) { s.Phase, s.JobIDFinished = phDeleteFailed, "b" },
			func(s *status) { s.Phase, s.JobIDFinished = phDeleteFailed, "b" },
		},
		"a finish without a final phase (b)": {pending, func(s *status) { s.JobIDFinished = "b" }, func(*status) {}},
		"a final phase without a finish (c)": {pending, func(s *status) { s.Phase = phSucceeded }, func(*status) {}},
		"a finish of another job (b)":        {pending, func(s *status) { s.Phase, s.JobIDFinished = phSucceeded, "c" }, func(*status) {}},
		"another ID on an unfinished job (d)": {
			pending, func(s *status) { s.JobID, s.JobIDGenerationTime = "c", mt(0) }, func(*status) {},
		},
		"a fresh ID on a finished job (d)": {
			done, func(s *status) { s.JobID, s.JobIDGenerationTime, s.Phase = "c", mt(0), phInit },
			func(s *status) { s.JobID, s.JobIDGenerationTime, s.Phase = "c", mt(0), phInit },
		},
		"an empty ID (d)":                     {done, func(s *status) { s.JobID = "" }, func(*status) {}},
		"a run on a finished job (b)":         {done, func(s *status) { s.Phase = phProgressing }, func(*status) {}},
		"another verdict on a finished job":   {done, func(s *status) { s.Phase = phFailed }, func(*status) {}},
		"generation time without an ID":       {pending, func(s *status) { s.JobIDGenerationTime = mt(0) }, func(*status) {}},
		"the finished ID goes back":           {done, func(s *status) { s.JobIDFinished = "" }, func(*status) {}},
		"work goes on":                        {pending, func(s *status) { s.Phase = phDeleting }, func(s *status) { s.Phase = phDeleting }},
		"the rest of the closed list":         {pending, func(s *status) { s.LastErrors, s.TransitionTimes = vandal().LastErrors, vandal().TransitionTimes }, func(s *status) { s.LastErrors, s.TransitionTimes = vandal().LastErrors, vandal().TransitionTimes }},
		"the deprecated phase is not written": {pending, func(s *status) { s.DeployerPhase = vandal().DeployerPhase }, func(*status) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, want := tc.before.Status.DeepCopy(), tc.before.Status.DeepCopy()
			tc.change(after)
			tc.want(want)
			contract.Mask(contract.RevisionJobID, &tc.before.Status, after)
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestMaskSharesNothing checks that restored values are copies.
func TestMaskSharesNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		before := ran(phProgressing, job("b", "a", -6), oldErrors).Status
		before.TransitionTimes, before.DeployerPhase = &lsv1alpha1.TransitionTimes{InitTime: mt(-5)}, vandal().DeployerPhase
		want := before.DeepCopy()
		after := before.DeepCopy()
		contract.Mask(r, &before, after)
		*after.DeployerPhase, *after.JobIDGenerationTime = "changed", val(9)
		after.TransitionTimes.InitTime, after.FirstError.Message = mt(9), "changed"
		if diff := cmp.Diff(want, &before); diff != "" {
			t.Errorf("%s: %s", r, diff)
		}
	}
}
