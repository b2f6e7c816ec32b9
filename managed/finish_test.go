// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply"
)

func TestReadinessOfFinishedJobs(t *testing.T) {
	job := func(ttl bool, condition string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "1"},
			"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}, "spec": map[string]any{},
		}}
		if ttl {
			out.Object["spec"] = map[string]any{"ttlSecondsAfterFinished": int64(5)}
		}
		return out
	}
	for name, tc := range map[string]struct {
		finish apply.Finish
		live   *unstructured.Unstructured
		want   apply.Finish
		reason string // why the Job is not ready
		reads  int
	}{
		"a complete Job is ready, and the inventory records it [F91]": {live: job(false, "Complete"), want: apply.FinishComplete, reads: 1},
		"a Job that was complete and is gone is ready [F91]":          {finish: apply.FinishComplete, want: apply.FinishGone, reads: 1},
		"a Job with a ttl that is gone is ready [F91]":                {finish: apply.FinishExpected, want: apply.FinishGone, reads: 1},
		"a Job that is done costs no read [F91]":                      {finish: apply.FinishGone, want: apply.FinishGone},
		"a Job that was not complete and is gone is not ready [F91]":  {reason: "does not exist", reads: 1},
		"a Job with a ttl that failed is not ready [F91]":             {finish: apply.FinishExpected, live: job(true, "Failed"), want: apply.FinishFailed, reason: "Job.batch ns/a", reads: 1},
		"a Job with a ttl that failed and is gone is not ready [F91]": {finish: apply.FinishFailed, want: apply.FinishFailed, reason: "failed and was removed", reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, reads := newTestEnv(t), 0
			w.cluster.Client.Client = interceptor.NewClient(w.cluster.Client.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
					if reads++; tc.live == nil {
						return apierrors.NewNotFound(schema.GroupResource{Group: "batch", Resource: "jobs"}, key.Name)
					}
					tc.live.DeepCopyInto(obj.(*unstructured.Unstructured))
					return nil
				},
			})
			r := w.begin(false)
			r.Inventory.Entries = []apply.Entry{{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "a", UID: "u", Finish: tc.finish}}
			err := r.CheckAllReady(t.Context(), 0)
			if (err == nil) != (tc.reason == "") || err != nil && !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("want an error with %q, got %v", tc.reason, err)
			}
			if got := r.Inventory.Entries[0].Finish; got != tc.want || reads != tc.reads {
				t.Errorf("want %q after %d reads, got %q after %d", tc.want, tc.reads, got, reads)
			}
		})
	}
}

func TestFightsWhileAJobWaits(t *testing.T) {
	w := newTestEnv(t)
	// call performs a call of the job that waits afterwards, and returns the number of objects that it corrects.
	call := func() int {
		r := w.begin(false)
		r.TakeTriggers()
		corrected := len(r.corrections.causes.Drifts)
		w.finishRun(r)
		_ = r.NewWaitError("readiness", 0, "waits", time.Second)
		return corrected
	}
	t.Run("a job that waits delays the corrections in a fight [F91]", func(t *testing.T) {
		call()
		for i, want := range []int{1, 1, 0, 0} {
			w.reportDrift("fought")
			if got := call(); got != want {
				t.Errorf("change %d: want %d corrections, got %d", i+1, want, got)
			}
		}
		w.clock.Step(10 * time.Second)
		if got := call(); got != 1 {
			t.Errorf("want the delayed correction, got %d", got)
		}
	})
	t.Run("the first call of a new job corrects all objects [F91]", func(t *testing.T) {
		w.reportDrift("fought")
		w.item.Status.JobID = "next"
		if got := call(); got != 1 {
			t.Errorf("want a correction, got %d", got)
		}
	})
}

func TestRerunOfFinishedJobs(t *testing.T) {
	w := newTestEnv(t)
	rerun := func() bool {
		r := w.begin(true)
		r.TakeTriggers()
		return r.CompleteOptions(w.cluster, apply.Options{}).RecreateFinished
	}
	t.Run("a thorough run of a schedule does not repeat finished Jobs [F91]", func(t *testing.T) {
		w.manager.items.get(w.item).triggers.ForceResync()
		if rerun() {
			t.Error("the Jobs are repeated")
		}
	})
	t.Run("a forced run repeats finished Jobs once [F91]", func(t *testing.T) {
		w.manager.ForceResync(w.item)
		if first, second := rerun(), rerun(); !first || second {
			t.Errorf("the first run repeats them: %t, the second: %t", first, second)
		}
	})
}
