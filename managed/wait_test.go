// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/apply"
)

func TestWaitingItem(t *testing.T) {
	t.Run("is woken by drift no more often than by other events [F61]", func(t *testing.T) {
		w := newTestEnv(t)
		r := w.begin(false)
		w.reportDrift("a")
		w.expectTriggers(1)
		if err := r.NewWaitError("step", 0, "reason", time.Minute); err == nil {
			t.Error("nothing is waited for")
		}
		for range 10 {
			w.reportDrift("a")
		}
		w.clock.Step(50 * time.Millisecond)
		w.expectTriggers(1)
		w.reportDrift("a")
		w.clock.Step(time.Second)
		w.expectTriggers(1)
		w.reportDrift("a")
		r.Finish()
		w.clock.Step(time.Minute)
		w.expectTriggers(0)
	})
	t.Run("shares what was applied among the calls of a run [F61]", func(t *testing.T) {
		w := newTestEnv(t)
		applied := func(r *Run) *apply.Applied { return r.CompleteOptions(r.Cluster, apply.Options{}).Applied }
		job := applied(w.begin(false))
		if again := w.begin(false); applied(again) != job {
			t.Error("the next call begins anew")
		}
		w.begin(false).Finish()
		if applied(w.begin(false)) == job {
			t.Error("a run without a job ID ended, and the next one does not begin anew")
		}
		w.item.Status.JobID = "1"
		job = applied(w.begin(false))
		w.begin(false).Finish()
		if applied(w.begin(false)) != job {
			t.Error("a job that comes once more begins anew")
		}
		w.item.Status.JobID = "2"
		if applied(w.begin(false)) == job {
			t.Error("the next job does not begin anew")
		}
	})
}
