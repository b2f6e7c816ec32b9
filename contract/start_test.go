// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// oldErrors adds the errors of an earlier run to the status.
func oldErrors(di *lsv1alpha1.DeployItem) {
	e := &lsv1alpha1.Error{Operation: "o", Reason: "r", Message: "old"}
	di.Status.LastError, di.Status.FirstError, di.Status.LastErrors = e, e.DeepCopy(), []*lsv1alpha1.Error{e.DeepCopy()}
}

func TestStart(t *testing.T) {
	t.Parallel()
	traces := []mod{oldErrors, owed(-2), func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, cond(contract.ConditionWaiting, "True", -2), cond("Theirs", "True", -2))
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: mt(-1), FinishedTime: mt(-4), WaitTime: mt(-4)}
		di.Status.ProviderStatus = raw(`{"apiVersion":"v1","kind":"Status"}`)
	}}
	with := func(mods ...mod) *lsv1alpha1.DeployItem { return ran(phSucceeded, append(traces, mods...)...) }
	theirs := []lsv1alpha1.Condition{cond("Theirs", "True", -2)}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		o    contract.Options
		want func(*lsv1alpha1.DeployItemStatus)
	}{
		"annotation run [L28] [C-4] [C7] [C11]": {
			with(generation(4)), annotated(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, mt(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run that deletes [L28]": {
			with(generation(4), finalizer, deleted(-1)), annotated(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, mt(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run that deletes although the clock of the API server is ahead": {
			with(generation(4), finalizer, deleted(2)), annotated(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, mt(2), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"annotation run of force-reconcile keeps the generation of a deleted item": {
			with(generation(4), finalizer, deleted(-1), op("force-reconcile")), annotated(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.LastReconcileTime, s.Deployer = phInit, mt(0), deployer
				s.LastError, s.Conditions = nil, theirs
			},
		},
		"job [L28] [C-4] [C7] [C9] [C11]": {
			with(generation(4), job("b", "a", -1)), jobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInit, 4, mt(0), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: mt(-1), InitTime: mt(0)}
			},
		},
		"job that deletes although the clock of Landscaper is ahead [C9]": {
			with(generation(4), job("b", "a", 3), finalizer, deleted(-1)), jobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.ObservedGeneration, s.LastReconcileTime, s.Deployer = phInitDelete, 4, mt(3), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: mt(-1), InitTime: mt(0)}
			},
		},
		"test-reconcile [C15]": {
			with(job("a", "a", -9), op("test-reconcile")), jobOptions(),
			func(s *lsv1alpha1.DeployItemStatus) {
				s.Phase, s.LastReconcileTime, s.Deployer = phInit, mt(0), deployer
				s.LastError, s.FirstError, s.LastErrors, s.Conditions = nil, nil, nil, theirs
				s.JobID, s.JobIDGenerationTime = "fresh", mt(0)
				s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: mt(0), InitTime: mt(0)}
			},
		},
		"background run writes nothing": {
			with(job("a", "a", -9)), jobOptions(), func(*lsv1alpha1.DeployItemStatus) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.di.DeepCopy()
			tc.want(&want.Status)
			d := contract.Evaluate(tc.di, tc.o).Force()
			before := tc.di.DeepCopy()
			contract.Start(tc.di, d, info())
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			masked := tc.di.Status.DeepCopy()
			contract.Mask(d.Revision, &before.Status, masked)
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
	for _, o := range []contract.Options{annotated(), jobOptions()} {
		t.Run(string(o.Revision)+" [F53]", func(t *testing.T) {
			t.Parallel()
			di := item(job("a", "", 0))
			for _, own := range contract.OwnConditions() {
				di.Status.Conditions = append(di.Status.Conditions, cond(own, "True", -1))
			}
			contract.Start(di, contract.Evaluate(di, o), info())
			want := []lsv1alpha1.Condition{cond(contract.ConditionDeployed, "True", -1), cond(contract.ConditionPaused, "True", -1)}
			if diff := cmp.Diff(want, di.Status.Conditions); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestStartWithoutTransitionTimes(t *testing.T) {
	t.Parallel()
	di := item(job("a", "", 0))
	d := contract.Evaluate(di, jobOptions())
	contract.Start(di, d, info())
	if diff := cmp.Diff(&lsv1alpha1.TransitionTimes{InitTime: mt(0)}, di.Status.TransitionTimes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	contract.Start(nil, d, info())
}

// TestStartRoundsTimes checks that the status in memory equals the stored status.
func TestStartRoundsTimes(t *testing.T) {
	t.Parallel()
	di := item(job("a", "", -1))
	s := info()
	s.Now = epoch.Add(987654321)
	contract.Start(di, contract.Evaluate(di, jobOptions()), s)
	if !di.Status.LastReconcileTime.Equal(mt(0)) || !di.Status.TransitionTimes.InitTime.Equal(mt(0)) {
		t.Errorf("not whole seconds: %v %v", di.Status.LastReconcileTime, di.Status.TransitionTimes.InitTime)
	}
}

func TestFinishUnchanged(t *testing.T) {
	t.Parallel()
	di := ran(phSucceeded, job("b", "a", -1), updateOnChange, oldErrors)
	want := di.DeepCopy()
	w := &want.Status
	w.LastReconcileTime, w.Deployer, w.JobIDFinished = mt(0), deployer, "b"
	w.LastError, w.FirstError, w.LastErrors = nil, nil, nil
	w.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: mt(0), FinishedTime: mt(0)}
	before := di.Status.DeepCopy()
	d := contract.Evaluate(di, jobOptions())
	contract.FinishUnchanged(di, d, info())
	if diff := cmp.Diff(want, di); diff != "" {
		t.Errorf("one write finishes the job [C15]: -want +got\n%s", diff)
	}
	masked := di.Status.DeepCopy()
	contract.Mask(contract.RevisionJobID, before, masked)
	if diff := cmp.Diff(&di.Status, masked); diff != "" {
		t.Errorf("changes fields that are not in the list of allowed fields: %s", diff)
	}
	contract.FinishUnchanged(di, d.Force(), info())
	contract.FinishUnchanged(nil, d, info())
	if diff := cmp.Diff(want, di); diff != "" {
		t.Errorf("a forced run is not finished: %s", diff)
	}
}
