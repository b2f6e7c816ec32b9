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

// third is a revision that exists only in this test. The results of all its methods differ from the results of the
// other revisions.
type third struct{}

const thirdRevision Revision = "third"

const thirdMark = "third.example/item"

func (third) revision() Revision { return thirdRevision }
func (third) claims(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.Annotations[thirdMark] != ""
}
func (t third) accepts(di *lsv1alpha1.DeployItem) bool { return t.claims(di) }
func (third) evaluate(_ view, d *Decision) {
	d.Due, d.New, d.Reason = true, true, "Third"
}
func (third) continues(_ view, d Decision) bool { return d.Reason == "Third" }
func (third) sameRun(stored, mine *lsv1alpha1.DeployItemStatus, _ Decision) bool {
	return stored.ObservedGeneration == mine.ObservedGeneration
}

func (third) phases() phaseNames {
	return phaseNames{initDelete: "ThirdInitDelete", deleteFailed: "ThirdDeleteFailed", writable: []phase{"ThirdInitDelete", phaseSucceeded}}
}
func (third) requested(*lsv1alpha1.DeployItem) *metav1.Time { t := stamp(thirdTime(1)); return &t }
func (third) runStart(*lsv1alpha1.DeployItem) *metav1.Time  { t := stamp(thirdTime(2)); return &t }
func (third) start(status *lsv1alpha1.DeployItemStatus, _ Decision, _ StartInfo) {
	status.JobID = "third-start"
}

func (third) finish(status *lsv1alpha1.DeployItemStatus, _ time.Time) {
	status.JobIDFinished = "third-finish"
}

func (third) recordHistory(status *lsv1alpha1.DeployItemStatus) {
	status.FirstError = &lsv1alpha1.Error{Reason: "third"}
}

func (third) mask(before, after *lsv1alpha1.DeployItemStatus) { after.JobID = before.JobID + "-third" }

func (third) hookFailed(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, _ time.Time) {
	status.LastErrors = []*lsv1alpha1.Error{e}
}
func (third) hookRecovered(status *lsv1alpha1.DeployItemStatus) { status.LastErrors = nil }
func (third) showsHookFailure(status *lsv1alpha1.DeployItemStatus) bool {
	return len(status.LastErrors) > 0
}

func (third) showsHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	return len(status.LastErrors) > 0 && status.LastErrors[0].Message == e.Message
}

func thirdTime(hours int) time.Time { return time.Date(2026, 3, 4, hours, 0, 0, 0, time.UTC) }

// addThird adds the third revision until the end of the test. The test must not run in parallel with other tests.
func addThird(t *testing.T) {
	t.Helper()
	before := revisions
	revisions = append([]rules{third{}}, revisions...)
	t.Cleanup(func() { revisions = before })
}

func thirdItem() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.UID, di.Generation, di.Annotations = "uid", 3, map[string]string{thirdMark: "x"}
	return di
}

// TestAddedRevision adds a revision and performs a run of an item that follows it. Each step must use the methods of
// that revision.
func TestAddedRevision(t *testing.T) {
	addThird(t)
	t.Run("an added revision is detected for its own items only [F52]", func(t *testing.T) {
		if got := Detect(thirdItem()); got != thirdRevision {
			t.Errorf("Detect() = %s", got)
		}
		di := thirdItem()
		di.Annotations = nil
		if got := Evaluate(di, Options{Revision: thirdRevision}).Revision; got != RevisionAnnotation {
			t.Errorf("an item that it does not accept follows %s", got)
		}
		if diff := cmp.Diff([]Revision{thirdRevision, RevisionJobID, RevisionAnnotation}, Revisions()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("an added revision uses its own rules for a run [F52]", func(t *testing.T) {
		di := thirdItem()
		d := Evaluate(di, Options{Now: thirdTime(0)})
		if want := (Decision{Revision: thirdRevision, Action: ActionReconcile, Due: true, New: true, Forceable: true, Reason: "Third"}); !cmp.Equal(d, want) {
			t.Fatal(cmp.Diff(want, d))
		}
		Start(di, d, StartInfo{Now: thirdTime(0)})
		if s := di.Status; s.JobID != "third-start" || s.TransitionTimes != nil || !s.LastReconcileTime.Time.Equal(thirdTime(1)) {
			t.Errorf("started as %+v", s)
		}
		if at, ok := Deadline(di, d); !ok || !at.Equal(thirdTime(2).Add(DefaultTimeout)) {
			t.Errorf("deadline %s, %t", at, ok)
		}
		if other := thirdItem(); SameRun(other, di, d) || !SameRun(di, di, d) {
			t.Error("the runs were compared by the rules of another revision")
		}
		Apply(di, d, Outcome{Phase: phaseSucceeded, Final: true, Done: true, Err: &lsv1alpha1.Error{Message: "m"}}, thirdTime(3), thirdTime(0))
		if s := di.Status; s.JobIDFinished != "third-finish" || s.FirstError.Reason != "third" || s.TransitionTimes != nil || len(s.LastErrors) != 0 {
			t.Errorf("ended as %+v", s)
		}
		after := di.Status.DeepCopy()
		after.Phase, after.JobIDFinished = phaseFailed, "passes"
		Mask(thirdRevision, &di.Status, after)
		if after.Phase != phaseSucceeded || after.JobID != "third-start-third" || after.JobIDFinished != "passes" {
			t.Errorf("masked as %+v", after)
		}
	})
	t.Run("an added revision has its own phases [F52]", func(t *testing.T) {
		o := Judge(CallResult{Revision: thirdRevision, Action: ActionDelete, Deleting: true, Phase: phaseFailed, Now: thirdTime(0)})
		for got, want := range map[phase]phase{
			InitialPhase(thirdRevision, ActionDelete): "ThirdInitDelete", startPhase(thirdRevision, true): "ThirdInitDelete",
			FailedPhase(thirdRevision, true): "ThirdDeleteFailed", storedPhase(thirdRevision, phaseDeleteFailed): "ThirdDeleteFailed",
			o.Phase: "ThirdDeleteFailed",
		} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("an added revision reports failed hooks in its own field [F52]", func(t *testing.T) {
		di, d := thirdItem(), Decision{Revision: thirdRevision}
		HookFailed(di, d, errors.New("boom"), thirdTime(0))
		if s := di.Status; len(s.LastErrors) != 1 || s.LastError != nil || s.Conditions != nil {
			t.Errorf("shown as %+v", s)
		}
		if !ShowsHookFailure(di, d) || !ShowsError(di, d, &lsv1alpha1.Error{Message: "boom"}) {
			t.Error("not shown")
		}
		if HookRecovered(di, d); ShowsHookFailure(di, d) {
			t.Error("still shown")
		}
	})
	t.Run("an added revision determines which runs continue during a pause [F52]", func(t *testing.T) {
		di := thirdItem()
		di.Annotations[PausedAnnotation] = "true"
		if d := Evaluate(di, Options{Now: thirdTime(0)}); !d.Due || d.New || d.Paused {
			t.Errorf("Evaluate(...) = %+v, want a due run that is not new", d)
		}
	})
}

// TestUnknownRevision requires that an unknown revision is never treated as one of the existing revisions.
func TestUnknownRevision(t *testing.T) {
	const odd Revision = "odd"
	di := thirdItem()
	di.Status = lsv1alpha1.DeployItemStatus{Phase: phaseInit, JobID: "b", JobIDFinished: "a", LastReconcileTime: &metav1.Time{Time: thirdTime(0)}}
	t.Run("an unknown revision starts no run [F52]", func(t *testing.T) {
		d := Evaluate(di, Options{Revision: odd, Now: thirdTime(0)})
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
		Start(after, d, StartInfo{Now: thirdTime(1), JobID: "fresh"})
		Apply(after, d, Outcome{Phase: phaseSucceeded, Final: true, Err: &lsv1alpha1.Error{Message: "m"}}, thirdTime(1), thirdTime(1))
		HookFailed(after, d, errors.New("boom"), thirdTime(1))
		Mask(odd, &di.Status, &after.Status)
		if diff := cmp.Diff(di, after); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if SameRun(di, di, d) {
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
