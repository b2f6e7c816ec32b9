// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// withOldErrors adds the errors of an earlier run to the status.
func withOldErrors(di *lsv1alpha1.DeployItem) {
	e := &lsv1alpha1.Error{Operation: "o", Reason: "r", Message: "old"}
	di.Status.LastError, di.Status.FirstError, di.Status.LastErrors = e, e.DeepCopy(), []*lsv1alpha1.Error{e.DeepCopy()}
}

func TestStart(t *testing.T) {
	t.Parallel()
	traces := []itemOption{withOldErrors, withPendingBackground(-2), func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, newCondition(contract.ConditionWaiting, "True", -2), newCondition("Theirs", "True", -2))
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ptrAfterMinutes(-1), FinishedTime: ptrAfterMinutes(-4), WaitTime: ptrAfterMinutes(-4)}
		di.Status.ProviderStatus = raw(`{"apiVersion":"v1","kind":"Status"}`)
	}}
	with := func(mods ...itemOption) *lsv1alpha1.DeployItem {
		return newStartedItem(phSucceeded, append(traces, mods...)...)
	}
	theirs := []lsv1alpha1.Condition{newCondition("Theirs", "True", -2)}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		o    contract.Options
		want func(*lsv1alpha1.DeployItemStatus)
	}{
		"annotation run [L28] [C-4] [C7] [C11]": {
			with(withGeneration(4)), newAnnotationOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, ptrAfterMinutes(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run that deletes [L28]": {
			with(withGeneration(4), withFinalizer, withDeletionTime(-1)), newAnnotationOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, ptrAfterMinutes(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run that deletes although the clock of the API server is ahead": {
			with(withGeneration(4), withFinalizer, withDeletionTime(2)), newAnnotationOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, ptrAfterMinutes(2), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run of force-reconcile keeps the generation of a deleted item": {
			with(withGeneration(4), withFinalizer, withDeletionTime(-1), withOperation("force-reconcile")), newAnnotationOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.LastReconcileTime, s.Deployer = phInit, ptrAfterMinutes(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"job [L28] [C-4] [C7] [C9] [C11]": {
			with(withGeneration(4), withJob("b", "a", -1)), newJobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, ptrAfterMinutes(0), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ptrAfterMinutes(-1), InitTime: ptrAfterMinutes(0)}
			},
		},
		"job that deletes although the clock of Landscaper is ahead [C9]": {
			with(withGeneration(4), withJob("b", "a", 3), withFinalizer, withDeletionTime(-1)), newJobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInitDelete, 4, ptrAfterMinutes(3), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ptrAfterMinutes(-1), InitTime: ptrAfterMinutes(0)}
			},
		},
		"test-reconcile [C15]": {
			with(withJob("a", "a", -9), withOperation("test-reconcile")), newJobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.LastReconcileTime, s.Deployer = phInit, ptrAfterMinutes(0), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.JobID, s.JobIDGenerationTime = "fresh", ptrAfterMinutes(0)
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ptrAfterMinutes(0), InitTime: ptrAfterMinutes(0)}
			},
		},
		"background run writes nothing": {
			with(withJob("a", "a", -9)), newJobOptions(), func(*lsv1alpha1.DeployItemStatus) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.di.DeepCopy()
			tc.want(&want.Status)
			d := contract.Evaluate(tc.di, tc.o).Force()
			before := tc.di.DeepCopy()
			contract.StartRun(tc.di, d, newStartInfo())
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			masked := tc.di.Status.DeepCopy()
			contract.RevertForbiddenChanges(d.Revision, &before.Status, masked)
			if diff := cmp.Diff(&tc.di.Status, masked); diff != "" {
				t.Errorf("Start changes fields that are not in the list of allowed fields: %s", diff)
			}
			if again := contract.Evaluate(tc.di, tc.o); !d.Background && (again.New && again.Action != contract.ActionReconcile) {
				t.Errorf("begins again: %+v", again)
			}
		})
	}
}

// TestStartRemovesConditionsOfPreviousRun requires that Start removes the conditions that describe the previous run,
// and keeps the library's other conditions.
func TestStartRemovesConditionsOfPreviousRun(t *testing.T) {
	t.Parallel()
	for _, o := range []contract.Options{newAnnotationOptions(), newJobOptions()} {
		t.Run(string(o.Revision)+" [F53]", func(t *testing.T) {
			t.Parallel()
			di := newItem(withJob("a", "", 0))
			for _, own := range contract.AllConditionTypes() {
				di.Status.Conditions = append(di.Status.Conditions, newCondition(own, "True", -1))
			}
			contract.StartRun(di, contract.Evaluate(di, o), newStartInfo())
			want := []lsv1alpha1.Condition{newCondition(contract.ConditionDeployed, "True", -1), newCondition(contract.ConditionPaused, "True", -1)}
			if diff := cmp.Diff(want, di.Status.Conditions); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestStartWithoutTransitionTimes(t *testing.T) {
	t.Parallel()
	di := newItem(withJob("a", "", 0))
	d := contract.Evaluate(di, newJobOptions())
	contract.StartRun(di, d, newStartInfo())
	if diff := cmp.Diff(&lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(0)}, di.Status.TransitionTimes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	contract.StartRun(nil, d, newStartInfo())
}

// TestStartRoundsTimes checks that the status in memory equals the stored status.
func TestStartRoundsTimes(t *testing.T) {
	t.Parallel()
	di := newItem(withJob("a", "", -1))
	s := newStartInfo()
	s.Now = epoch.Add(987654321)
	contract.StartRun(di, contract.Evaluate(di, newJobOptions()), s)
	if !di.Status.LastReconcileTime.Equal(ptrAfterMinutes(0)) || !di.Status.TransitionTimes.InitTime.Equal(ptrAfterMinutes(0)) {
		t.Errorf("not whole seconds: %v %v", di.Status.LastReconcileTime, di.Status.TransitionTimes.InitTime)
	}
}

func TestFinishUnchanged(t *testing.T) {
	t.Parallel()
	di := newStartedItem(phSucceeded, withJob("b", "a", -1), withUpdateOnChangeOnly, withOldErrors)
	want := di.DeepCopy()
	w := &want.Status
	w.LastReconcileTime, w.Deployer, w.JobIDFinished = ptrAfterMinutes(0), deployer, "b"
	w.LastError, w.FirstError, w.LastErrors = nil, nil, nil
	w.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(0), FinishedTime: ptrAfterMinutes(0)}
	before := di.Status.DeepCopy()
	d := contract.Evaluate(di, newJobOptions())
	contract.FinishUnchanged(di, d, newStartInfo())
	if diff := cmp.Diff(want, di); diff != "" {
		t.Errorf("one write finishes the job [C15]: -want +got\n%s", diff)
	}
	masked := di.Status.DeepCopy()
	contract.RevertForbiddenChanges(contract.RevisionJobID, before, masked)
	if diff := cmp.Diff(&di.Status, masked); diff != "" {
		t.Errorf("changes fields that are not in the list of allowed fields: %s", diff)
	}
	contract.FinishUnchanged(di, d.Force(), newStartInfo())
	contract.FinishUnchanged(nil, d, newStartInfo())
	if diff := cmp.Diff(want, di); diff != "" {
		t.Errorf("a forced run is not finished: %s", diff)
	}
}
