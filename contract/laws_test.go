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

// world simulates one item. Landscaper, users and a deployer perform random actions on the item at random times, and
// the deployer may crash between any two writes.
type world struct {
	t        *testing.T
	r        *rand.Rand
	di       *lsv1alpha1.DeployItem
	now      time.Time
	jobs     bool // Landscaper uses the job-ID revision
	n        int
	finished map[string]bool
	gone     bool
	kind     bool // the deployer always succeeds and never crashes
	log      []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return newWorldOf(t, rand.New(rand.NewPCG(seed, 1))) // the same numbers in every run
}

func newWorldOf(t *testing.T, r *rand.Rand) *world {
	t.Helper()
	w := &world{t: t, r: r, di: item(), now: epoch, jobs: r.IntN(2) == 0, finished: map[string]bool{"": true}}
	if r.IntN(2) == 0 {
		managed(w.di)
	}
	if w.jobs && r.IntN(2) == 0 {
		note(lsv1alpha1.DeployerTypeAnnotation, "x")(w.di)
	}
	w.di.Spec.UpdateOnChangeOnly = r.IntN(4) == 0
	return w
}

func (w *world) chance(in int) bool { return !w.kind && w.r.IntN(in) == 0 }

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter %q\nitem %+v", fmt.Sprintf(format, args...), w.log, w.di.Status)
}

// event performs one random action of Landscaper or a user on the item.
func (w *world) event() {
	s := &w.di.Status
	switch w.r.IntN(10) {
	case 9:
		w.pause()
	case 0, 1:
		w.handOut()
	case 2:
		w.di.Generation++
	case 3:
		if w.di.DeletionTimestamp == nil && w.r.IntN(3) == 0 {
			w.di.DeletionTimestamp = ref(w.now)
			w.di.Generation += w.r.Int64N(2)
		}
	case 4:
		ops := []lsv1alpha1.Operation{"reconcile", "force-reconcile", "abort", "test-reconcile", "odd"}
		op(ops[w.r.IntN(len(ops))])(w.di)
		note(contract.AbortTimestampAnnotation, w.now.Format(time.RFC3339))(w.di)
	case 5:
		if s.JobID != s.JobIDFinished && w.r.IntN(3) == 0 {
			w.finished[s.JobID] = true
			s.JobIDFinished, s.Phase = s.JobID, contract.FailedPhase(contract.RevisionJobID, w.di.DeletionTimestamp != nil)
		}
	default:
		w.now = w.now.Add(time.Duration(w.r.IntN(240)) * time.Second)
		return
	}
	w.note("event: phase %s job %q/%q generation %d/%d deleted %t %v", s.Phase, s.JobID, s.JobIDFinished,
		w.di.Generation, s.ObservedGeneration, w.di.DeletionTimestamp != nil, w.di.Annotations[keyOp])
}

// handOut makes Landscaper request a job. Landscaper's clock differs from the deployer's clock by up to two minutes.
func (w *world) handOut() {
	s := &w.di.Status
	if !w.jobs || s.JobID != s.JobIDFinished {
		return
	}
	w.n++
	at := w.now.Add(time.Duration(w.r.IntN(240)-120) * time.Second)
	s.JobID, s.JobIDGenerationTime = fmt.Sprintf("job-%d", w.n), ref(at)
	s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: ref(at)}
}

// pass performs one reconcile of the deployer.
func (w *world) pass() {
	d := contract.Evaluate(w.di, contract.Options{Now: w.now})
	checkDecision(w.t, w.log, d)
	if w.chance(4) {
		d = d.Force()
	}
	w.note("pass: %+v", d)
	w.checkPause(d)
	s := contract.StartInfo{Now: w.now, Deployer: deployer, JobID: fmt.Sprintf("test-%d", len(w.log))}
	if d.New && !d.Unchanged {
		w.write(d, func() { contract.Start(w.di, d, s) })
	}
	if w.chance(8) {
		return
	}
	switch {
	case d.Unchanged:
		w.write(d, func() { contract.FinishUnchanged(w.di, d, s) })
	case d.Due:
		if w.di.DeletionTimestamp == nil && !contract.HasOurFinalizer(w.di) {
			finalizer(w.di)
		}
		w.act(d)
		return
	}
	w.remove(d.Remove...)
}

// act performs the deployer call of a reconcile and writes the outcome.
func (w *world) act(d contract.Decision) {
	w.remove(d.Remove...)
	o := w.outcome(d)
	started := w.now
	if !w.kind {
		w.now = w.now.Add(time.Duration(w.r.IntN(60)) * time.Second)
	}
	if w.chance(8) {
		return
	}
	if d.Action == contract.ActionDelete && o.Done {
		w.gone = true
		return
	}
	w.write(d, func() { contract.Apply(w.di, d, o, w.now, started) })
	if o.Consumed && !w.chance(8) {
		w.remove(keyOp, keyAbort)
	}
}

// outcome simulates a deployer call, which may change the status in any way, and returns the outcome.
func (w *world) outcome(d contract.Decision) contract.Outcome {
	deleting := w.di.DeletionTimestamp != nil
	switch {
	case d.Expired:
		return contract.EndedByLibrary(d.Revision, deleting, contract.TimeoutError(nil, time.Minute, w.now))
	case d.SkipUninstall:
		return contract.Outcome{Done: true}
	}
	r := contract.CallResult{
		Revision: d.Revision, Action: d.Action, Deleting: deleting, Now: w.now,
		Phase: contract.InitialPhase(d.Revision, d.Action), LastError: vandal().LastError,
	}
	if w.kind {
		return contract.Judge(r)
	}
	r.Phase = all[w.r.IntN(len(all))]
	r.Waiting = w.chance(4)
	if w.chance(3) {
		r.Err = errBoom
	}
	if w.chance(9) {
		r.Err = errors.Join(errBoom, errConfig)
	}
	w.write(d, func() { w.di.Status.ProviderStatus = vandal().ProviderStatus })
	return contract.Judge(r)
}

func (w *world) remove(keys ...string) {
	for _, k := range keys {
		delete(w.di.Annotations, k)
	}
}

// write performs a status write of the deployer, and checks every rule for writes.
func (w *world) write(d contract.Decision, change func()) {
	before := w.di.Status.DeepCopy()
	change()
	after := &w.di.Status
	masked := after.DeepCopy()
	contract.Mask(d.Revision, before, masked)
	if diff := cmp.Diff(after, masked); diff != "" {
		w.fail("%+v writes outside its closed list [C10]: %s", d, diff)
	}
	if d.Revision != contract.RevisionJobID {
		return
	}
	w.checkJob(d, before, after)
}

// checkJob requires that a write follows the rules for finishing a job.
func (w *world) checkJob(d contract.Decision, before, after *lsv1alpha1.DeployItemStatus) {
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
		w := newWorld(t, seed)
		for step := 0; step < 40 && !w.gone; step++ {
			if w.r.IntN(2) == 0 {
				w.event()
			} else {
				w.pass()
			}
		}
		w.settle()
	}
}

// settle ends a pause and continues the simulation. From then on, there are no events and no crashes, and the deployer
// succeeds.
func (w *world) settle() {
	w.kind = true
	delete(w.di.Annotations, contract.PausedAnnotation)
	for n := 0; !w.gone; n++ {
		d := contract.Evaluate(w.di, contract.Options{Now: w.now})
		if !d.Due && len(d.Remove) == 0 {
			break
		}
		if n == 6 {
			w.fail("does not come to rest: %+v", d)
		}
		w.pass()
	}
	s := &w.di.Status
	held := w.di.DeletionTimestamp != nil && !contract.HasOurFinalizer(w.di)
	if !w.gone && !held && s.JobID != s.JobIDFinished {
		w.fail("the job is stranded")
	}
}
