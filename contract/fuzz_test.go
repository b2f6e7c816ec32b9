// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// FuzzEvaluate feeds whatever decodes as a deploy item through every function, under every revision: no panic, no change
// by a reader, every law of a decision holds.
func FuzzEvaluate(f *testing.F) {
	for _, di := range []*lsv1alpha1.DeployItem{
		item(), ran(phProgressing, job("b", "a", -6), oldErrors), ran(phSucceeded, job("a", "a", -6), owed(-2), op("force-reconcile")),
		ran(phFailed, deleted(-1), finalizer, op("abort"), note(keyAbort, "x")), ran(phInit, timeout(-1), managed),
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
		for _, r := range []contract.Revision{"", contract.Annotation, contract.JobID, "odd"} {
			one := di.DeepCopy()
			d := contract.Evaluate(one, contract.Options{Revision: r, Now: now})
			checkDecision(t, string(body), d)
			contract.NeverDeployed(one)
			contract.AbortDeadline(one, now)
			contract.SameRun(one, one, d)
			if diff := cmp.Diff(&di, one); diff != "" {
				t.Fatalf("a reader wrote: %s", diff)
			}
			d = d.Force()
			contract.Start(one, d, contract.StartInfo{Now: now, JobID: "fresh"})
			contract.FinishUnchanged(one, d, contract.StartInfo{Now: now})
			o := contract.Judge(contract.Return{Revision: d.Revision, Action: d.Action, Phase: di.Status.Phase, LastError: di.Status.LastError, Now: now})
			contract.Apply(one, d, o, now, now)
			contract.Protect(&di.Status, &one.Status, d.Revision)
			contract.Mask(d.Revision, &di.Status, &one.Status)
			contract.Bound(&one.Status)
			_ = contract.CheckProviderStatus(one.Status.ProviderStatus)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"finished": ran(phSucceeded, job("a", "a", -6), managed),
		"new job":  ran(phSucceeded, job("b", "a", -6), managed),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				contract.Evaluate(di, contract.Options{Now: epoch})
			}
		})
	}
}
