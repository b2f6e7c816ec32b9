// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

// TestDriftIsCorrectedWithoutAWatch covers update strategies that read an object before they write it. No watch reports
// changes of such objects, so the engine asks the run whether it may correct them.
func TestDriftIsCorrectedWithoutAWatch(t *testing.T) {
	changed := func() apply.DriftedObject {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		older, newer := metav1.NewTime(startTime.Add(-time.Hour)), metav1.NewTime(startTime)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "editor", Time: &newer},
			{Manager: "older", Time: &older},
			{Manager: "deployerkit-4f1e", Time: &newer},
			{Manager: "kubelet", Subresource: "status", Time: &newer},
			{Manager: "scaler", Subresource: "scale"},
		})
		return apply.DriftedObject{
			Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "fought"}, Resource: configMaps, UID: "u",
			Live: live, Fields: []string{".data.a"},
		}
	}
	// heal performs a background run that finds a change of the object. It reports whether the run may correct the
	// object.
	heal := func(w *testEnv) bool {
		r := w.begin(true)
		r.TakeTriggers()
		may := r.corrections.isAllowed(r.Cluster, changed())
		w.finishRun(r)
		return may
	}
	message := func(w *testEnv) string {
		if c := contract.GetCondition(w.item.Status.Conditions, ConditionContested); c != nil {
			return c.Message
		}
		return ""
	}
	t.Run("that come back are slowed down and told in a condition [F24]", func(t *testing.T) {
		w := newTestEnv(t)
		if first, second := heal(w), heal(w); !first || !second || message(w) != "" {
			t.Fatal("the first changes are not put right at once")
		}
		if third, fourth := heal(w), heal(w); third || fourth {
			t.Error("a fight is not slowed down")
		}
		for _, part := range []string{"configmaps ns/fought", "data.a", "by editor", "10s"} {
			if !strings.Contains(message(w), part) {
				t.Errorf("condition without %q: %s", part, message(w))
			}
		}
		w.expectHookResult(false, 10*time.Second)
		w.expectTriggers(0)
		w.clock.Step(10 * time.Second)
		w.expectTriggers(1)
		if !heal(w) || message(w) == "" {
			t.Error("not put right when it was time, or not told any more")
		}
		w.clock.Step(10 * time.Second)
		w.expectTriggers(1)
		r := w.begin(true)
		r.TakeTriggers()
		w.finishRun(r)
		if message(w) != "" {
			t.Errorf("told although it is over: %s", message(w))
		}
	})
	t.Run("are not counted twice if a watch has reported them [F24]", func(t *testing.T) {
		w := newTestEnv(t)
		for range 2 {
			w.begin(true)
			w.reportDrift("fought")
			if !heal(w) {
				t.Error("not put right at once")
			}
		}
		w.reportDrift("fought")
		w.expectHookResult(true, 0) // a run is due, which sets the condition
		if heal(w) {
			t.Error("a fight is not slowed down")
		}
		w.expectHookResult(false, 10*time.Second)
	})
	t.Run("are put right by jobs and thorough runs [F24]", func(t *testing.T) {
		w := newTestEnv(t)
		for range 3 {
			heal(w)
		}
		r := w.begin(false)
		if r.TakeTriggers(); !r.corrections.isAllowed(r.Cluster, changed()) {
			t.Error("a job leaves the object")
		}
		w.manager.ForceResync(w.item)
		r = w.begin(true)
		if r.TakeTriggers(); !r.corrections.isAllowed(r.Cluster, changed()) {
			t.Error("a thorough run leaves the object")
		}
	})
}
