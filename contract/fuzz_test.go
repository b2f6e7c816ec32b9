// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// FuzzEvaluate passes any deploy item to every function, under every revision. No function may panic, functions that
// only read must not change the item, every decision must pass checkDecision, and a run must change only the fields of
// its revision.
func FuzzEvaluate(f *testing.F) {
	for _, di := range []*lsv1alpha1.DeployItem{
		newItem(), newStartedItem(phProgressing, withJob("b", "a", -6), withOldErrors), newStartedItem(phSucceeded, withJob("a", "a", -6), withPendingBackground(-2), withOperation("force-reconcile")),
		newStartedItem(phFailed, withDeletionTime(-1), withFinalizer, withOperation("abort"), withAnnotation(keyAbort, "x")), newStartedItem(phInit, withTimeout(-1), withManagedLabel),
		newStartedItem(phSucceeded, withOperation("force-reconcile")), newStartedItem(phProgressing, withDeletionTime(-1), withFinalizer, withOperation("abort")), newStartedItem(phFailed, withDeletionTime(-1), withFinalizer),
	} {
		body, err := json.Marshal(di)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, int64(0))
	}
	f.Add([]byte(`{"metadata":{"deletionTimestamp":null},"status":{"lastErrors":[null],"transitionTimes":{},"conditions":[{}]}}`), int64(1<<60))
	f.Fuzz(func(t *testing.T, body []byte, nanos int64) {
		var di lsv1alpha1.DeployItem
		if json.Unmarshal(body, &di) != nil {
			return
		}
		now := time.Unix(0, nanos)
		for _, r := range []contract.Revision{"", contract.RevisionAnnotation, contract.RevisionJobID, "odd"} {
			one := di.DeepCopy()
			d := contract.Evaluate(one, contract.Options{Revision: r, Now: now})
			checkDecision(t, string(body), d)
			contract.WasNeverDeployed(one)
			contract.AbortDeadline(one, now)
			contract.IsSameRun(one, one, d)
			if diff := cmp.Diff(d, contract.Evaluate(one, contract.Options{Revision: r, Now: now})); diff != "" {
				t.Fatalf("the second call of Evaluate returned another decision: %s", diff)
			}
			if diff := cmp.Diff(&di, one); diff != "" {
				t.Fatalf("a function that only reads changed the item: %s", diff)
			}
			runItem(t, one, d.Force(), now)
		}
	})
}

// runItem performs a run of an item: it starts the run, simulates the deployer call and ends the run.
func runItem(t *testing.T, di *lsv1alpha1.DeployItem, d contract.Decision, now time.Time) {
	t.Helper()
	if d.Due && !d.Background && !d.Unchanged {
		before := di.Status.DeepCopy()
		contract.StartRun(di, d, contract.StartInfo{Now: now, JobID: "fresh"})
		checkFields(t, d, before, &di.Status)
	}
	before := di.Status.DeepCopy()
	contract.FinishUnchanged(di, d, contract.StartInfo{Now: now})
	o := contract.DetermineOutcome(contract.CallResult{
		Revision: d.Revision, Action: d.Action, Deleting: di.DeletionTimestamp != nil, Phase: di.Status.Phase, LastError: di.Status.LastError, Now: now,
	})
	contract.ApplyOutcome(di, d, o, now, now)
	if d.Due && !d.Unchanged {
		checkFields(t, d, before, &di.Status)
		checkEnd(t, d, o, before, &di.Status)
	}
	contract.RevertForbiddenChanges(d.Revision, before, &di.Status)
	_ = contract.CheckProviderStatus(di.Status.ProviderStatus)
}

// checkFields requires that a run under the annotation revision does not change the fields of jobs [C10], and that no
// run changes Landscaper's job ID, the provider status or the deployer phase.
func checkFields(t *testing.T, d contract.Decision, before, after *lsv1alpha1.DeployItemStatus) {
	t.Helper()
	type job struct {
		ID, Finished string
		Times        *lsv1alpha1.TransitionTimes
		First        *lsv1alpha1.Error
		All          []*lsv1alpha1.Error
	}
	of := func(s *lsv1alpha1.DeployItemStatus) job {
		return job{s.JobID, s.JobIDFinished, s.TransitionTimes, s.FirstError, s.LastErrors}
	}
	if diff := cmp.Diff(of(before), of(after)); d.Revision == contract.RevisionAnnotation && diff != "" {
		t.Fatalf("%+v writes fields of jobs: %s", d, diff)
	}
	if after.JobID != before.JobID && !d.NewJob {
		t.Fatalf("%+v writes job ID %q", d, after.JobID)
	}
	if diff := cmp.Diff(before.ProviderStatus, after.ProviderStatus); diff != "" || before.DeployerPhase != after.DeployerPhase {
		t.Fatalf("%+v changes fields that it must not write: %s", d, diff)
	}
}

// checkEnd requires that a final phase and jobIDFinished are written together [C10], and that a background run changes
// neither of them.
func checkEnd(t *testing.T, d contract.Decision, o contract.Outcome, before, after *lsv1alpha1.DeployItemStatus) {
	t.Helper()
	finished := after.JobIDFinished == after.JobID
	switch {
	case d.Background && (after.Phase != before.Phase || after.JobIDFinished != before.JobIDFinished):
		t.Fatalf("%+v: a background run has the condition %+v", d, after)
	case d.Background:
	case o.Final && !contract.IsFinal(after.Phase):
		t.Fatalf("%+v ended with phase %q", d, after.Phase)
	case !o.Final && after.Phase != before.Phase && contract.IsFinal(after.Phase):
		t.Fatalf("%+v did not end, but shows %q", d, after.Phase)
	case d.Revision == contract.RevisionJobID && o.Final && !finished:
		t.Fatalf("%+v ended, but job %q is not finished", d, after.JobID)
	case d.Revision == contract.RevisionJobID && !o.Final && after.JobIDFinished != before.JobIDFinished:
		t.Fatalf("%+v did not end, but job %q is finished", d, after.JobID)
	}
}

// choices is a source of random numbers. It uses the bytes of a fuzz input first, and then a generator.
type choices struct {
	bytes []byte
	after *rand.PCG
}

// Uint64 puts each byte of the fuzz input into both the high and the low bits of a number, because rand derives some
// small numbers from the high bits and others from the low bits.
func (c *choices) Uint64() uint64 {
	if len(c.bytes) == 0 {
		return c.after.Uint64()
	}
	b := uint64(c.bytes[0])
	c.bytes = c.bytes[1:]
	return b<<56 | b<<24 | b
}

// FuzzLaws does the same as TestContractInvariants, but the fuzz input determines the random choices.
func FuzzLaws(f *testing.F) {
	for seed := range uint64(60) {
		r, data := rand.New(rand.NewPCG(seed, 2)), make([]byte, 120)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{bytes: data, after: rand.NewPCG(3, 4)}
		w := newSimulationFrom(t, rand.New(c))
		for step := 0; step < 60 && !w.gone && len(c.bytes) > 0; step++ {
			if w.r.IntN(2) == 0 {
				w.event()
			} else {
				w.reconcileOnce()
			}
		}
		w.runUntilFinished()
	})
}

func BenchmarkEvaluate(b *testing.B) {
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"finished": newStartedItem(phSucceeded, withJob("a", "a", -6), withManagedLabel),
		"new job":  newStartedItem(phSucceeded, withJob("b", "a", -6), withManagedLabel),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				contract.Evaluate(di, contract.Options{Now: epoch})
			}
		})
	}
}
