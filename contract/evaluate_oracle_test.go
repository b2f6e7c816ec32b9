// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// state describes one combination of the properties of an item that Evaluate reads.
type state struct {
	phase     phase
	op        lsv1alpha1.Operation
	deletion  string // "" (no deletion), "ours" (with Landscaper's finalizer), "foreign" (without it)
	moved     bool   // observedGeneration differs from the generation
	started   string // lastReconcileTime: "", "early" (before deletion and job), "late"
	job       string // "", "finished", "pending", "timeless" (pending without generation time)
	managed   bool
	ignored   bool
	owed      bool
	unchanged bool
	paused    bool
}

func (s state) item() *lsv1alpha1.DeployItem {
	di := newItem(withPhase(s.phase), withObservedGeneration(3), withAnnotation("other", "annotation"))
	if s.op != "" {
		withOperation(s.op)(di)
	}
	if s.deletion != "" {
		withDeletionTime(-3)(di)
	}
	if s.deletion != "foreign" {
		withFinalizer(di)
	}
	if s.moved {
		withObservedGeneration(0)(di)
	}
	switch s.started {
	case "early":
		withLastReconcileTime(-5)(di)
	case "late":
		withLastReconcileTime(-2)(di)
	}
	switch s.job {
	case "finished":
		withJob("a", "a", -4)(di)
	case "pending":
		withJob("b", "a", -4)(di)
	case "timeless":
		withJob("b", "a", -4)(di)
		di.Status.JobIDGenerationTime = nil
	}
	if s.managed {
		withManagedLabel(di)
	}
	if s.ignored {
		withAnnotation(lsv1alpha1.IgnoreAnnotation, "true")(di)
	}
	if s.owed {
		withPendingBackground(-1)(di)
	}
	if s.paused {
		withPause(di)
	}
	di.Spec.UpdateOnChangeOnly = s.unchanged
	return di
}

// expectation contains the part of a Decision that the oracle predicts.
type expectation struct {
	Action                                             contract.Action
	Due, New, Background, Forceable, Unchanged, NewJob bool
	RemovesOperation, Paused, Held                     bool
}

func newExpectation(d contract.Decision) expectation {
	v := expectation{d.Action, d.Due, d.New, d.Background, d.Forceable, d.Unchanged, d.NewJob, false, d.Paused, d.BlockedByPause}
	for _, k := range d.RemoveAnnotations {
		v.RemovesOperation = v.RemovesOperation || k == lsv1alpha1.OperationAnnotation
	}
	return v
}

// expect returns the verdict that the oracle predicts, including the effect of a pause.
func (s state) expect(r contract.Revision) expectation {
	v := s.expectUnpaused(r)
	none := v.Action == contract.ActionNone
	if !s.paused || none || v.Due && v.Action == contract.ActionAbort {
		return v
	}
	late := s.op == contract.AbortOperation && isDone(s.phase)
	if !v.Due {
		return expectation{Action: v.Action, RemovesOperation: v.RemovesOperation, Paused: true}
	}
	if r == contract.RevisionJobID {
		reconciles := s.phase == phInit || s.phase == phProgressing || s.phase == phCompleting
		turned := v.Action == contract.ActionDelete && reconciles
		if v.Background && s.owed || !v.Background && !v.New && !turned {
			return v
		}
		return expectation{Action: v.Action, RemovesOperation: late, Paused: true, Held: true}
	}
	turned := v.Action == contract.ActionDelete && s.phase != phDeleting && (s.moved || s.started != "late")
	if !IsInProgress(s.phase) || s.started == "" || turned {
		return expectation{Action: v.Action, RemovesOperation: late, Paused: true, Held: true}
	}
	if v.New {
		v.New, v.RemovesOperation = false, late
	}
	return v
}

// expectUnpaused is like the method `expect`, but does not take a pause into account. It expresses the contract as
// independent rules, in another form than the tested code.
func (s state) expectUnpaused(r contract.Revision) expectation {
	abort := s.op == contract.AbortOperation
	late := abort && isDone(s.phase)
	force, reconcile, test := s.op == "force-reconcile", s.op == "reconcile", s.op == "test-reconcile"
	deletes := s.deletion == "ours"
	if s.deletion == "foreign" || (s.ignored && isDone(s.phase)) {
		return expectation{}
	}
	v := expectation{Action: contract.ActionReconcile, RemovesOperation: late}
	if deletes {
		v.Action = contract.ActionDelete
	}
	if force {
		v.Action = contract.ActionForceReconcile
	}
	if abort && !late {
		v.Action = contract.ActionAbort
	}
	if r == contract.RevisionAnnotation {
		virgin := s.managed && s.op == "" && !deletes && s.phase == "" && s.moved
		failedDelete := deletes && (s.phase == phFailed || s.phase == phDeleteFailed) && !s.moved &&
			s.started == "late" && !reconcile && !force
		if virgin || failedDelete {
			return v
		}
		goesOn := IsInProgress(s.phase) && !reconcile && s.started != "" && !s.moved ||
			IsInProgress(s.phase) && abort ||
			IsInProgress(s.phase) && force && deletes && s.started == "late"
		v.Due = goesOn || !isDone(s.phase) || s.moved || reconcile || force || deletes
		v.New = v.Due && !goesOn
		v.Forceable = true
		v.RemovesOperation = late || reconcile
		return v
	}
	v.RemovesOperation = late || test
	if s.job == "pending" || s.job == "timeless" {
		pickedUp := s.started == "late" || (s.started == "early" && s.job == "timeless")
		v.Due, v.Forceable = true, true
		v.New = !IsInProgress(s.phase) || !pickedUp
		v.Unchanged = s.unchanged && s.phase == phSucceeded && !s.moved && !deletes && !force
		return v
	}
	if test {
		v.Due, v.New, v.NewJob, v.Forceable = true, true, true, true
		return v
	}
	ownForce := force && !s.managed
	allowed := s.job == "finished" && isDone(s.phase) && !deletes && (!s.moved || ownForce)
	v.Background, v.Forceable = allowed, allowed
	v.Due = allowed && (force || s.owed)
	return v
}

// revisionOf returns the revision that an item in this state follows if the given revision is forced.
func (s state) revisionOf(forced contract.Revision) contract.Revision {
	if forced == contract.RevisionJobID && s.job == "" && IsInProgress(s.phase) {
		return contract.RevisionAnnotation
	}
	return forced
}

// TestEvaluateEveryState compares Evaluate with the oracle for every state.
func TestEvaluateEveryState(t *testing.T) {
	t.Parallel()
	cells := 0
	eachState(func(s state) {
		di := s.item()
		before := di.DeepCopy()
		for _, r := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
			cells++
			d := contract.Evaluate(di, contract.Options{Revision: r, Now: epoch})
			rev := s.revisionOf(r)
			if d.Revision != rev {
				t.Fatalf("%+v: revision = %s, want %s", s, d.Revision, rev)
			}
			if diff := cmp.Diff(s.expect(rev), newExpectation(d)); diff != "" {
				t.Fatalf("%s %+v: -want +got\n%s", r, s, diff)
			}
			checkDecision(t, s, d)
		}
		if cells%97 == 0 {
			if diff := cmp.Diff(before, di); diff != "" {
				t.Fatalf("%+v: Evaluate changed the item: %s", s, diff)
			}
		}
	})
	if cells < 100_000 {
		t.Fatalf("only %d cells", cells)
	}
}

// checkDecision checks the rules that apply to every decision: it has exactly one action [L30], and its flags are
// consistent.
func checkDecision(t *testing.T, name any, d contract.Decision) {
	t.Helper()
	switch d.Action {
	case contract.ActionNone, contract.ActionAbort, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionReconcile:
	default:
		t.Fatalf("%s: unknown action %q", name, d.Action)
	}
	for _, law := range [...]struct {
		name string
		ok   bool
	}{
		{"a decision without an action is neither due nor forceable", d.Action != contract.ActionNone || (!d.Due && !d.Forceable && len(d.RemoveAnnotations) == 0)},
		{"a due run is forceable", !d.Due || d.Forceable},
		{"a new run is due", !d.New || d.Due},
		{"a background run is not new", !d.Background || !d.New},
		{"a background run neither deletes nor aborts", !d.Background || d.Action == contract.ActionReconcile || d.Action == contract.ActionForceReconcile},
		{"an unchanged run is new and reconciles", !d.Unchanged || (d.New && d.Action == contract.ActionReconcile)},
		{"an expired run is due and not new", !d.Expired || (d.Due && !d.New && d.Action != contract.ActionAbort)},
		{"only a deletion skips the uninstall", !d.SkipUninstall || d.Action == contract.ActionDelete},
		{"a new job is a new run", !d.NewJob || d.New},
		{"a paused item is neither due nor forceable", !d.Paused || (!d.Due && !d.Forceable && !d.New && !d.Background && !d.Unchanged && !d.NewJob)},
		{"only the run of a paused item is held back", !d.BlockedByPause || d.Paused},
		{"a decision has a reason", d.Reason != ""},
	} {
		if !law.ok {
			t.Fatalf("%v: %s is broken by %+v", name, law.name, d)
		}
	}
}

func eachState(do func(state)) {
	flags := []bool{false, true}
	ops := []lsv1alpha1.Operation{"", "reconcile", "force-reconcile", "abort", "test-reconcile", "something"}
	for _, p := range allPhases {
		for _, o := range ops {
			for _, del := range []string{"", "ours", "foreign"} {
				for _, start := range []string{"", "early", "late"} {
					for _, j := range []string{"", "finished", "pending", "timeless"} {
						for i := range 64 {
							do(state{
								p, o, del, flags[i&1], start, j,
								flags[i>>1&1], flags[i>>2&1], flags[i>>3&1], flags[i>>4&1], flags[i>>5&1],
							})
						}
					}
				}
			}
		}
	}
}
