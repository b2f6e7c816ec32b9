// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// thirdRules is a revision that exists only in this test. The results of all its methods differ from the results of the
// other revisions.
type thirdRules struct{}

const thirdRevision Revision = "third"

const thirdMark = "third.example/item"

func (thirdRules) revision() Revision { return thirdRevision }
func (thirdRules) isSelectedBy(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.Annotations[thirdMark] != ""
}
func (t thirdRules) supports(di *lsv1alpha1.DeployItem) bool { return t.isSelectedBy(di) }
func (thirdRules) evaluate(_ view, d *Decision) {
	d.Due, d.New, d.Reason = true, true, "Third"
}
func (thirdRules) isInProgress(_ view, d Decision) bool { return d.Reason == "Third" }
func (thirdRules) isSameRun(stored, mine *lsv1alpha1.DeployItemStatus, _ Decision) bool {
	return stored.ObservedGeneration == mine.ObservedGeneration
}

func (thirdRules) listPhases() revisionPhases {
	return revisionPhases{initDelete: "ThirdInitDelete", deleteFailed: "ThirdDeleteFailed", writable: []phase{"ThirdInitDelete", phaseSucceeded}}
}

func (thirdRules) requestTime(*lsv1alpha1.DeployItem) *metav1.Time {
	t := toStoredTime(newThirdTime(1))
	return &t
}

func (thirdRules) runStart(*lsv1alpha1.DeployItem) *metav1.Time {
	t := toStoredTime(newThirdTime(2))
	return &t
}

func (thirdRules) start(status *lsv1alpha1.DeployItemStatus, _ Decision, _ StartInfo) {
	status.JobID = "third-start"
}

func (thirdRules) setFinished(status *lsv1alpha1.DeployItemStatus, _ time.Time) {
	status.JobIDFinished = "third-finish"
}

func (thirdRules) recordHistory(status *lsv1alpha1.DeployItemStatus) {
	status.FirstError = &lsv1alpha1.Error{Reason: "third"}
}

func (thirdRules) mask(before, after *lsv1alpha1.DeployItemStatus) {
	after.JobID = before.JobID + "-third"
}

func (thirdRules) setHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, _ time.Time) {
	status.LastErrors = []*lsv1alpha1.Error{e}
}
func (thirdRules) removeHookError(status *lsv1alpha1.DeployItemStatus) { status.LastErrors = nil }
func (thirdRules) hasHookError(status *lsv1alpha1.DeployItemStatus) bool {
	return len(status.LastErrors) > 0
}

func (thirdRules) isHookErrorRecorded(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	return len(status.LastErrors) > 0 && status.LastErrors[0].Message == e.Message
}

func newThirdTime(hours int) time.Time { return time.Date(2026, 3, 4, hours, 0, 0, 0, time.UTC) }

// addThird adds the third revision until the end of the test. The test must not run in parallel with other tests.
func addThird(t *testing.T) {
	t.Helper()
	before := allRules
	allRules = append([]rules{thirdRules{}}, allRules...)
	t.Cleanup(func() { allRules = before })
}

func newThirdItem() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID, di.Generation, di.Annotations = "uid", 3, map[string]string{thirdMark: "x"}
	return di
}

// TestAddedRevision adds a revision and performs a run of an item that follows it. Each step must use the methods of
// that revision.
func TestAddedRevision(t *testing.T) {
	addThird(t)
	t.Run("an added revision is detected for its own items only [F52]", func(t *testing.T) {
		if got := DetectRevision(newThirdItem()); got != thirdRevision {
			t.Errorf("Detect() = %s", got)
		}
		di := newThirdItem()
		di.Annotations = nil
		if got := Evaluate(di, Options{Revision: thirdRevision}).Revision; got != RevisionAnnotation {
			t.Errorf("an item that it does not accept follows %s", got)
		}
		if diff := cmp.Diff([]Revision{thirdRevision, RevisionJobID, RevisionAnnotation}, AllRevisions()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("an added revision uses its own rules for a run [F52]", func(t *testing.T) {
		di := newThirdItem()
		d := Evaluate(di, Options{Now: newThirdTime(0)})
		if want := (Decision{Revision: thirdRevision, Action: ActionReconcile, Due: true, New: true, Forceable: true, Reason: "Third"}); !cmp.Equal(d, want) {
			t.Fatal(cmp.Diff(want, d))
		}
		StartRun(di, d, StartInfo{Now: newThirdTime(0)})
		if s := di.Status; s.JobID != "third-start" || s.TransitionTimes != nil || !s.LastReconcileTime.Time.Equal(newThirdTime(1)) {
			t.Errorf("started as %+v", s)
		}
		if at, ok := RunDeadline(di, d); !ok || !at.Equal(newThirdTime(2).Add(DefaultTimeout)) {
			t.Errorf("deadline %s, %t", at, ok)
		}
		if other := newThirdItem(); IsSameRun(other, di, d) || !IsSameRun(di, di, d) {
			t.Error("the runs were compared by the rules of another revision")
		}
		ApplyOutcome(di, d, Outcome{Phase: phaseSucceeded, Final: true, Done: true, Err: &lsv1alpha1.Error{Message: "m"}}, newThirdTime(3), newThirdTime(0))
		if s := di.Status; s.JobIDFinished != "third-finish" || s.FirstError.Reason != "third" || s.TransitionTimes != nil || len(s.LastErrors) != 0 {
			t.Errorf("ended as %+v", s)
		}
		after := di.Status.DeepCopy()
		after.Phase, after.JobIDFinished = phaseFailed, "passes"
		RevertForbiddenChanges(thirdRevision, &di.Status, after)
		if after.Phase != phaseSucceeded || after.JobID != "third-start-third" || after.JobIDFinished != "passes" {
			t.Errorf("masked as %+v", after)
		}
	})
	t.Run("an added revision has its own phases [F52]", func(t *testing.T) {
		o := DetermineOutcome(CallResult{Revision: thirdRevision, Action: ActionDelete, Deleting: true, Phase: phaseFailed, Now: newThirdTime(0)})
		for got, want := range map[phase]phase{
			InitialPhase(thirdRevision, ActionDelete): "ThirdInitDelete", startPhase(thirdRevision, true): "ThirdInitDelete",
			FailedPhase(thirdRevision, true): "ThirdDeleteFailed", toStoredPhase(thirdRevision, phaseDeleteFailed): "ThirdDeleteFailed",
			o.Phase: "ThirdDeleteFailed",
		} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("an added revision reports failed hooks in its own field [F52]", func(t *testing.T) {
		di, d := newThirdItem(), Decision{Revision: thirdRevision}
		SetHookError(di, d, errors.New("boom"), newThirdTime(0))
		if s := di.Status; len(s.LastErrors) != 1 || s.LastError != nil || s.Conditions != nil {
			t.Errorf("shown as %+v", s)
		}
		if !HasHookError(di, d) || !IsErrorRecorded(di, d, &lsv1alpha1.Error{Message: "boom"}) {
			t.Error("not shown")
		}
		if RemoveHookError(di, d); HasHookError(di, d) {
			t.Error("still shown")
		}
	})
	t.Run("an added revision determines which runs continue during a pause [F52]", func(t *testing.T) {
		di := newThirdItem()
		di.Annotations[PausedAnnotation] = "true"
		if d := Evaluate(di, Options{Now: newThirdTime(0)}); !d.Due || d.New || d.Paused {
			t.Errorf("Evaluate(...) = %+v, want a due run that is not new", d)
		}
	})
}

// TestUnknownRevision requires that an unknown revision is never treated as one of the existing revisions.
func TestUnknownRevision(t *testing.T) {
	const odd Revision = "odd"
	di := newThirdItem()
	di.Status = lsv1alpha1.DeployItemStatus{Phase: phaseInit, JobID: "b", JobIDFinished: "a", LastReconcileTime: &metav1.Time{Time: newThirdTime(0)}}
	t.Run("an unknown revision starts no run [F52]", func(t *testing.T) {
		d := Evaluate(di, Options{Revision: odd, Now: newThirdTime(0)})
		if diff := cmp.Diff(Decision{Revision: odd, Reason: reasonUnknownRevision}, d); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if d.Force().Due {
			t.Error("a hook can force a run")
		}
	})
	t.Run("an unknown revision writes nothing [F52]", func(t *testing.T) {
		d := Decision{Revision: odd, Action: ActionReconcile, Due: true, New: true}
		after := di.DeepCopy()
		StartRun(after, d, StartInfo{Now: newThirdTime(1), JobID: "fresh"})
		ApplyOutcome(after, d, Outcome{Phase: phaseSucceeded, Final: true, Err: &lsv1alpha1.Error{Message: "m"}}, newThirdTime(1), newThirdTime(1))
		SetHookError(after, d, errors.New("boom"), newThirdTime(1))
		RevertForbiddenChanges(odd, &di.Status, &after.Status)
		if diff := cmp.Diff(di, after); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if IsSameRun(di, di, d) {
			t.Error("SameRun is true under an unknown revision")
		}
	})
}

// TestNoCodeComparesRevisions requires that no code compares revisions. Such a comparison would silently treat a new
// revision like one of the existing revisions.
func TestNoCodeComparesRevisions(t *testing.T) {
	for _, dir := range []string{"", "../deployerlib", "../landscapertest", "../conformance", "../cmd"} {
		t.Run("no comparison in "+filepath.Join("contract", dir)+" [F52]", func(t *testing.T) {
			err := filepath.WalkDir(filepath.Join(".", dir), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
					return err
				}
				set := token.NewFileSet()
				file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
				if err != nil {
					return err
				}
				ast.Inspect(file, func(n ast.Node) bool {
					if c, ok := n.(*ast.BinaryExpr); ok && (c.Op == token.EQL || c.Op == token.NEQ) && (isRevision(c.X) || isRevision(c.Y)) {
						t.Errorf("%s: a revision is compared", set.Position(c.OpPos))
					}
					return true
				})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// isRevision reports whether an expression is a constant of type Revision.
func isRevision(e ast.Expr) bool {
	text := types.ExprString(e)
	return slices.Contains([]string{"JobID", "Annotation", "contract.RevisionJobID", "contract.RevisionAnnotation"}, text)
}
