// SPDX-License-Identifier: Apache-2.0

package upkeep

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

func TestWake(t *testing.T) {
	const uid = types.UID("4f1e")
	t.Run("makes one run of several wishes", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.wants(false, 0)
		for range 3 {
			w.keeper.Wake(uid, time.Time{})
		}
		w.wantTriggers(1)
		w.wants(true, 0)
		w.begin(true).Take()
		w.wants(false, 0)
		w.wantTriggers(0)
	})
	t.Run("during a run makes exactly one more", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true).Take()
		w.keeper.Wake(uid, time.Time{})
		w.keeper.Wake(uid, time.Time{})
		w.wantTriggers(1)
		w.wants(true, 0)
		w.begin(true).Take()
		w.wants(false, 0)
	})
	t.Run("waits for its time, the earliest of several", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.keeper.Wake(uid, noon.Add(time.Minute))
		w.keeper.Wake(uid, noon.Add(10*time.Second))
		w.keeper.Wake(uid, noon.Add(time.Hour))
		w.wantTriggers(0)
		w.wants(false, 10*time.Second)
		w.clock.Step(9 * time.Second)
		w.wantTriggers(0)
		w.wants(false, time.Second)
		w.clock.Step(time.Second)
		w.wantTriggers(1)
		w.wants(true, 0)
		w.clock.Step(2 * time.Hour)
		w.wantTriggers(0)
	})
	t.Run("at once overtakes one for later", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.keeper.Wake(uid, noon.Add(time.Minute))
		w.keeper.Wake(uid, time.Time{})
		w.wantTriggers(1)
		w.begin(true).Take()
		w.clock.Step(time.Hour)
		w.wantTriggers(0)
		w.wants(false, 0)
	})
	t.Run("survives a run that fails, and is told anew when it comes anew", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.keeper.Wake(uid, time.Time{})
		r := w.begin(true)
		r.Take()
		r.GiveBack()
		r.GiveBack()
		w.wantTriggers(1)
		w.wants(true, 0)
		w.keeper.Wake(uid, time.Time{})
		w.wantTriggers(1)
	})
	t.Run("ends with the item", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.keeper.Wake(uid, noon.Add(time.Minute))
		w.keeper.Forget(uid)
		w.keeper.Wake(uid, time.Time{})
		w.clock.Step(time.Hour)
		w.wantTriggers(0)
		w.wants(false, 0)
	})
	t.Run("is not for items whose owner wants none, nor for those that go", func(t *testing.T) {
		w := newWorld(t)
		w.begin(true)
		w.keeper.Wake(uid, time.Time{})
		w.item.Annotations = map[string]string{continuousreconcile.ActiveAnnotation: "false"}
		w.wants(false, 0)
		w.item.Annotations = nil
		w.wants(true, 0)
		w.item.DeletionTimestamp = &metav1.Time{Time: noon}
		w.wants(false, 0)
	})
}

func TestSchedule(t *testing.T) {
	w := newWorld(t)
	answer := &extension.HookResult{AbortReconcile: true}
	hooks := w.keeper.Hooks(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return answer, nil
	})
	w.ask(hooks)
	r := w.begin(true)
	if r.Take(); r.Thorough() {
		t.Error("thorough before it is due")
	}
	answer = &extension.HookResult{}
	if run, _ := w.ask(hooks); !run {
		t.Error("no run although it is due")
	}
	r = w.begin(true)
	if r.Take(); !r.Thorough() || !r.Options(r.Cluster, apply.Options{}).Force {
		t.Error("the run of the schedule believes what the watches know")
	}
	if r.Take(); !r.Thorough() {
		t.Error("Take again gave something else")
	}
	r = w.begin(true)
	if r.Take(); r.Thorough() {
		t.Error("the next run is thorough, too")
	}
}

func TestFights(t *testing.T) {
	fight := func(t *testing.T) *world {
		w := newWorld(t)
		for range 3 {
			w.begin(true).Take()
			w.drift("fought")
		}
		w.begin(true).Take()
		w.wants(false, 10*time.Second)
		w.drift("edited")
		w.wants(true, 0)
		return w
	}
	entry := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "fought", UID: "u", Key: "ours"}
	looksUntouched := func(r *Run) bool {
		r.Inventory.Entries = []apply.Entry{entry}
		seen, known := r.Options(r.Cluster, apply.Options{}).Seen.Get(configMaps, entry.Ref().Key())
		return known && seen.UID == "u" && seen.Key == "ours"
	}
	t.Run("are left for later by a run that heals others", func(t *testing.T) {
		w := fight(t)
		r := w.begin(true)
		r.Take()
		if len(r.corrections.causes.Drifts) != 1 || !looksUntouched(r) {
			t.Errorf("the run heals %v, and writes what is fought about", r.corrections.causes.Drifts)
		}
		r.corrections.giveBack()
		w.wants(true, 0)
		w.begin(true).Take()
		w.wants(false, 10*time.Second)
		w.keeper.Wake(w.item.UID, time.Time{})
		w.wants(true, 0)
		r = w.begin(true)
		if r.Take(); len(r.corrections.causes.Drifts) != 0 || !looksUntouched(r) {
			t.Errorf("a run that Wake requested heals %v", r.corrections.causes.Drifts)
		}
		w.clock.Step(10 * time.Second)
		w.wants(true, 0)
		r = w.begin(true)
		if r.Take(); len(r.corrections.causes.Drifts) != 1 || looksUntouched(r) {
			t.Errorf("it is time, but the run heals %v", r.corrections.causes.Drifts)
		}
	})
	t.Run("are ended by jobs and thorough runs", func(t *testing.T) {
		w := fight(t)
		r := w.begin(false)
		if r.Take(); len(r.corrections.causes.Drifts) != 2 || looksUntouched(r) {
			t.Errorf("a job heals %v", r.corrections.causes.Drifts)
		}
		w = fight(t)
		w.keeper.Thorough(w.item)
		r = w.begin(true)
		if r.Take(); len(r.corrections.causes.Drifts) != 2 || looksUntouched(r) {
			t.Errorf("a thorough run heals %v", r.corrections.causes.Drifts)
		}
	})
}
