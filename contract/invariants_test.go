// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// simulation simulates one item. Landscaper, users and a deployer perform random actions on the item at random times,
// and the deployer may crash between any two writes.
type simulation struct {
	t              *testing.T
	r              *rand.Rand
	di             *lsv1alpha1.DeployItem
	now            time.Time
	jobs           bool // Landscaper uses the job-ID revision
	n              int
	finished       map[string]bool
	gone           bool
	alwaysSucceeds bool // the deployer always succeeds and never crashes
	log            []string
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	return newSimulationFrom(t, rand.New(rand.NewPCG(seed, 1))) // the same numbers in every run
}

func newSimulationFrom(t *testing.T, r *rand.Rand) *simulation {
	t.Helper()
	w := &simulation{t: t, r: r, di: newItem(), now: epoch, jobs: r.IntN(2) == 0, finished: map[string]bool{"": true}}
	if r.IntN(2) == 0 {
		withManagedLabel(w.di)
	}
	if w.jobs && r.IntN(2) == 0 {
		withAnnotation(lsv1alpha1.DeployerTypeAnnotation, "x")(w.di)
	}
	w.di.Spec.UpdateOnChangeOnly = r.IntN(4) == 0
	return w
}

func (w *simulation) randomBool(in int) bool { return !w.alwaysSucceeds && w.r.IntN(in) == 0 }

func (w *simulation) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *simulation) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter %q\nitem %+v", fmt.Sprintf(format, args...), w.log, w.di.Status)
}

// event performs one random action of Landscaper or a user on the item.
func (w *simulation) event() {
	s := &w.di.Status
	switch w.r.IntN(10) {
	case 9:
		w.togglePause()
	case 0, 1:
		w.requestJob()
	case 2:
		w.di.Generation++
	case 3:
		if w.di.DeletionTimestamp == nil && w.r.IntN(3) == 0 {
			w.di.DeletionTimestamp = ptrTo(w.now)
			w.di.Generation += w.r.Int64N(2)
		}
	case 4:
		ops := []lsv1alpha1.Operation{"reconcile", "force-reconcile", "abort", "test-reconcile", "odd"}
		withOperation(ops[w.r.IntN(len(ops))])(w.di)
		withAnnotation(contract.AbortTimestampAnnotation, w.now.Format(time.RFC3339))(w.di)
	case 5:
		if s.JobID != s.JobIDFinished && w.r.IntN(3) == 0 {
			w.finished[s.JobID] = true
			s.JobIDFinished, s.Phase = s.JobID, contract.FailedPhase(contract.RevisionJobID, w.di.DeletionTimestamp != nil)
		}
	default:
		w.now = w.now.Add(time.Duration(w.r.IntN(240)) * time.Second)
		return
	}
	w.logf("event: phase %s job %q/%q generation %d/%d deleted %t %v", s.Phase, s.JobID, s.JobIDFinished,
		w.di.Generation, s.ObservedGeneration, w.di.DeletionTimestamp != nil, w.di.Annotations[keyOp])
}

// requestJob makes Landscaper request a job. Landscaper's clock differs from the deployer's clock by up to two minutes.
func (w *simulation) requestJob() {
	s := &w.di.Status
	if !w.jobs || s.JobID != s.JobIDFinished {
		return
	}
	w.n++
	at := w.now.Add(time.Duration(w.r.IntN(240)-120) * time.Second)
	s.JobID, s.JobIDGenerationTime = fmt.Sprintf("job-%d", w.n), ptrTo(at)
	s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ptrTo(at)}
}

// reconcileOnce performs one reconcile of the deployer.
func (w *simulation) reconcileOnce() {
	d := contract.Evaluate(w.di, contract.Options{Now: w.now})
	checkDecision(w.t, w.log, d)
	if w.randomBool(4) {
		d = d.Force()
	}
	w.logf("pass: %+v", d)
	w.checkPause(d)
	s := contract.StartInfo{Now: w.now, Deployer: deployer, JobID: fmt.Sprintf("test-%d", len(w.log))}
	if d.New && !d.Unchanged {
		w.write(d, func() { contract.StartRun(w.di, d, s) })
	}
	if w.randomBool(8) {
		return
	}
	switch {
	case d.Unchanged:
		w.write(d, func() { contract.FinishUnchanged(w.di, d, s) })
	case d.Due:
		if w.di.DeletionTimestamp == nil && !contract.HasLandscaperFinalizer(w.di) {
			withFinalizer(w.di)
		}
		w.callDeployer(d)
		return
	}
	w.remove(d.RemoveAnnotations...)
}

// callDeployer performs the deployer call of a reconcile and writes the outcome.
func (w *simulation) callDeployer(d contract.Decision) {
	w.remove(d.RemoveAnnotations...)
	o := w.getRandomOutcome(d)
	started := w.now
	if !w.alwaysSucceeds {
		w.now = w.now.Add(time.Duration(w.r.IntN(60)) * time.Second)
	}
	if w.randomBool(8) {
		return
	}
	if d.Action == contract.ActionDelete && o.Done {
		w.gone = true
		return
	}
	w.write(d, func() { contract.ApplyOutcome(w.di, d, o, w.now, started) })
	if o.Consumed && !w.randomBool(8) {
		w.remove(keyOp, keyAbort)
	}
}

// getRandomOutcome simulates a deployer call, which may change the status in any way, and returns the outcome.
func (w *simulation) getRandomOutcome(d contract.Decision) contract.Outcome {
	deleting := w.di.DeletionTimestamp != nil
	switch {
	case d.Expired:
		return contract.EndedByLibrary(d.Revision, deleting, contract.NewTimeoutError(nil, time.Minute, w.now))
	case d.SkipUninstall:
		return contract.Outcome{Done: true}
	}
	r := contract.CallResult{
		Revision: d.Revision, Action: d.Action, Deleting: deleting, Now: w.now,
		Phase: contract.InitialPhase(d.Revision, d.Action), LastError: newChangedStatus().LastError,
	}
	if w.alwaysSucceeds {
		return contract.DetermineOutcome(r)
	}
	r.Phase = allPhases[w.r.IntN(len(allPhases))]
	r.Waiting = w.randomBool(4)
	if w.randomBool(3) {
		r.Err = errBoom
	}
	if w.randomBool(9) {
		r.Err = errors.Join(errBoom, errConfig)
	}
	w.write(d, func() { w.di.Status.ProviderStatus = newChangedStatus().ProviderStatus })
	return contract.DetermineOutcome(r)
}

func (w *simulation) remove(keys ...string) {
	for _, k := range keys {
		delete(w.di.Annotations, k)
	}
}

// write performs a status write of the deployer, and checks every rule for writes.
func (w *simulation) write(d contract.Decision, change func()) {
	before := w.di.Status.DeepCopy()
	change()
	after := &w.di.Status
	masked := after.DeepCopy()
	contract.RevertForbiddenChanges(d.Revision, before, masked)
	if diff := cmp.Diff(after, masked); diff != "" {
		w.fail("%+v writes outside its closed list [C10]: %s", d, diff)
	}
	if d.Revision != contract.RevisionJobID {
		return
	}
	w.checkJob(d, before, after)
}

// checkJob requires that a write follows the rules for finishing a job.
func (w *simulation) checkJob(d contract.Decision, before, after *lsv1alpha1.DeployItemStatus) {
	finishes := after.JobIDFinished != before.JobIDFinished
	switch {
	case finishes && (after.JobIDFinished != after.JobID || !contract.IsFinal(after.Phase)):
		w.fail("(a) a finish that is not one: %+v", d)
	case finishes && w.finished[after.JobIDFinished]:
		w.fail("a job ended twice: %+v", d)
	case after.JobID != "" && after.JobID == after.JobIDFinished && !contract.IsFinal(after.Phase):
		w.fail("(b) a finished job with phase %s: %+v", after.Phase, d)
	case !finishes && after.Phase != before.Phase && contract.IsFinal(after.Phase):
		w.fail("(c) a final phase without a finish: %+v", d)
	case after.JobID != before.JobID && (!d.NewJob || before.JobID != before.JobIDFinished):
		w.fail("(d) a job ID that only Landscaper may set: %+v", d)
	case d.Background && after.Phase != before.Phase:
		w.fail("a background run moved the phase: %+v", d)
	}
	w.finished[after.JobIDFinished] = true
}

// TestContractInvariants simulates many items and checks every write: the atomicity rules (a) to (d) [C10], the lists
// of fields that a deployer may write, and one action per reconcile [L30]. At the end, nothing fails any more, and the
// item must reach a state in which no run is due.
func TestContractInvariants(t *testing.T) {
	t.Parallel()
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		w := newSimulation(t, seed)
		for step := 0; step < 40 && !w.gone; step++ {
			if w.r.IntN(2) == 0 {
				w.event()
			} else {
				w.reconcileOnce()
			}
		}
		w.runUntilFinished()
	}
}

// runUntilFinished ends a pause and continues the simulation. From then on, there are no events and no crashes, and the
// deployer succeeds.
func (w *simulation) runUntilFinished() {
	w.alwaysSucceeds = true
	delete(w.di.Annotations, contract.PausedAnnotation)
	for n := 0; !w.gone; n++ {
		d := contract.Evaluate(w.di, contract.Options{Now: w.now})
		if !d.Due && len(d.RemoveAnnotations) == 0 {
			break
		}
		if n == 6 {
			w.fail("does not come to rest: %+v", d)
		}
		w.reconcileOnce()
	}
	s := &w.di.Status
	held := w.di.DeletionTimestamp != nil && !contract.HasLandscaperFinalizer(w.di)
	if !w.gone && !held && s.JobID != s.JobIDFinished {
		w.fail("the job is stranded")
	}
}
