// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

func TestTrigger(t *testing.T) {
	const uid = types.UID("4f1e")
	t.Run("several triggers start one run", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.expectHookResult(false, 0)
		for range 3 {
			w.manager.Trigger(uid, time.Time{})
		}
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
		w.begin(true).TakeTriggers()
		w.expectHookResult(false, 0)
		w.expectTriggers(0)
	})
	t.Run("a trigger during a run starts exactly one more run", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true).TakeTriggers()
		w.manager.Trigger(uid, time.Time{})
		w.manager.Trigger(uid, time.Time{})
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
		w.begin(true).TakeTriggers()
		w.expectHookResult(false, 0)
	})
	t.Run("a run starts at the earliest of several requested times", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.manager.Trigger(uid, startTime.Add(time.Minute))
		w.manager.Trigger(uid, startTime.Add(10*time.Second))
		w.manager.Trigger(uid, startTime.Add(time.Hour))
		w.expectTriggers(0)
		w.expectHookResult(false, 10*time.Second)
		w.clock.Step(9 * time.Second)
		w.expectTriggers(0)
		w.expectHookResult(false, time.Second)
		w.clock.Step(time.Second)
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
		w.clock.Step(2 * time.Hour)
		w.expectTriggers(0)
	})
	t.Run("a trigger without a delay replaces a delayed one", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.manager.Trigger(uid, startTime.Add(time.Minute))
		w.manager.Trigger(uid, time.Time{})
		w.expectTriggers(1)
		w.begin(true).TakeTriggers()
		w.clock.Step(time.Hour)
		w.expectTriggers(0)
		w.expectHookResult(false, 0)
	})
	t.Run("a trigger survives a failed run, and a new trigger causes another event", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.manager.Trigger(uid, time.Time{})
		r := w.begin(true)
		r.TakeTriggers()
		r.ReturnTriggers()
		r.ReturnTriggers()
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
		w.manager.Trigger(uid, time.Time{})
		w.expectTriggers(1)
	})
	t.Run("a trigger has no effect after the item was forgotten", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.manager.Trigger(uid, startTime.Add(time.Minute))
		w.manager.Forget(uid)
		w.manager.Trigger(uid, time.Time{})
		w.clock.Step(time.Hour)
		w.expectTriggers(0)
		w.expectHookResult(false, 0)
	})
	t.Run("a trigger has no effect on deactivated items and on items that are being deleted", func(t *testing.T) {
		w := newTestEnv(t)
		w.begin(true)
		w.manager.Trigger(uid, time.Time{})
		w.item.Annotations = map[string]string{continuousreconcile.ActiveAnnotation: "false"}
		w.expectHookResult(false, 0)
		w.item.Annotations = nil
		w.expectHookResult(true, 0)
		w.item.DeletionTimestamp = &metav1.Time{Time: startTime}
		w.expectHookResult(false, 0)
	})
}

func TestScheduleForcesResync(t *testing.T) {
	w := newTestEnv(t)
	answer := &extension.HookResult{AbortReconcile: true}
	hooks := w.manager.NewHooks(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return answer, nil
	})
	w.runHooks(hooks)
	r := w.begin(true)
	if r.TakeTriggers(); r.IsResyncForced() {
		t.Error("thorough before it is due")
	}
	answer = &extension.HookResult{}
	if run, _ := w.runHooks(hooks); !run {
		t.Error("no run although it is due")
	}
	r = w.begin(true)
	if r.TakeTriggers(); !r.IsResyncForced() || !r.CompleteOptions(r.Cluster, apply.Options{}).Force {
		t.Error("the run of the schedule believes what the watches know")
	}
	if r.TakeTriggers(); !r.IsResyncForced() {
		t.Error("Take again gave something else")
	}
	r = w.begin(true)
	if r.TakeTriggers(); r.IsResyncForced() {
		t.Error("the next run is thorough, too")
	}
}

func TestFights(t *testing.T) {
	fight := func(t *testing.T) *testEnv {
		w := newTestEnv(t)
		for range 3 {
			w.begin(true).TakeTriggers()
			w.reportDrift("fought")
		}
		w.begin(true).TakeTriggers()
		w.expectHookResult(false, 10*time.Second)
		w.reportDrift("edited")
		w.expectHookResult(true, 0)
		return w
	}
	entry := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "fought", UID: "u", Fingerprint: "ours"}
	looksUntouched := func(r *Run) bool {
		r.Inventory.Entries = []apply.Entry{entry}
		seen, known := r.CompleteOptions(r.Cluster, apply.Options{}).Watched.Get(configMaps, entry.Ref().Key())
		return known && seen.UID == "u" && seen.Fingerprint == "ours"
	}
	t.Run("a run that corrects other objects postpones the correction of an object with a fight", func(t *testing.T) {
		w := fight(t)
		r := w.begin(true)
		r.TakeTriggers()
		if len(r.corrections.causes.Drifts) != 1 || !looksUntouched(r) {
			t.Errorf("the run heals %v, and writes what is fought about", r.corrections.causes.Drifts)
		}
		r.corrections.returnTriggers()
		w.expectHookResult(true, 0)
		w.begin(true).TakeTriggers()
		w.expectHookResult(false, 10*time.Second)
		w.manager.Trigger(w.item.UID, time.Time{})
		w.expectHookResult(true, 0)
		r = w.begin(true)
		if r.TakeTriggers(); len(r.corrections.causes.Drifts) != 0 || !looksUntouched(r) {
			t.Errorf("a run that Trigger requested corrects %v", r.corrections.causes.Drifts)
		}
		w.clock.Step(10 * time.Second)
		w.expectHookResult(true, 0)
		r = w.begin(true)
		if r.TakeTriggers(); len(r.corrections.causes.Drifts) != 1 || looksUntouched(r) {
			t.Errorf("it is time, but the run heals %v", r.corrections.causes.Drifts)
		}
	})
	t.Run("jobs and forced resyncs correct all objects, and end the fights", func(t *testing.T) {
		w := fight(t)
		r := w.begin(false)
		if r.TakeTriggers(); len(r.corrections.causes.Drifts) != 2 || looksUntouched(r) {
			t.Errorf("a job heals %v", r.corrections.causes.Drifts)
		}
		w = fight(t)
		w.manager.ForceResync(w.item)
		r = w.begin(true)
		if r.TakeTriggers(); len(r.corrections.causes.Drifts) != 2 || looksUntouched(r) {
			t.Errorf("a thorough run heals %v", r.corrections.causes.Drifts)
		}
	})
}
