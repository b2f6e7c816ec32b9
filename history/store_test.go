// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	began = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	item  = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// addReconcile records a reconcile that takes one second and requests the next reconcile after the given delay.
func addReconcile(s *Store, item types.NamespacedName, at time.Time, after time.Duration) {
	rec := s.Begin(item, at)
	rec.AddPhase(Phase{Name: "contract", Verdict: "proceed", Micros: 1000}, at.Add(time.Microsecond))
	rec.AddHook(Hook{Type: "ShouldReconcile", Name: "continuous-reconcile", Effect: "abort", Micros: 1}, at.Add(2*time.Microsecond))
	rec.Complete(Result{
		Now: at.Add(time.Second), Reason: "NewJob", Action: "reconcile", Result: "done", Codes: []string{"ERR_TIMEOUT"},
		Calls: []Call{{Cluster: "target", Verb: "patch", Resource: "deployments.apps", Count: 2, Start: 3, Micros: 4}}, HasNext: after > 0, After: after,
	})
}

func TestStore(t *testing.T) {
	t.Run("the store keeps the calls and writes of a reconcile [V4]", func(t *testing.T) {
		s := NewStore(0)
		addReconcile(s, item, began, time.Minute)
		want := []Reconcile{{
			Began: began, Micros: 1_000_000, Trigger: TriggerStart, Reason: "NewJob", Action: "reconcile", Result: "done", Codes: []string{"ERR_TIMEOUT"},
			Phases: []Phase{{Name: "contract", Verdict: "proceed", Start: 1, Micros: 1000}},
			Hooks:  []Hook{{Type: "ShouldReconcile", Name: "continuous-reconcile", Effect: "abort", Start: 2, Micros: 1}},
			Calls:  []Call{{Cluster: "target", Verb: "patch", Resource: "deployments.apps", Count: 2, Start: 3, Micros: 4}},
			Next:   &NextReconcile{At: began.Add(time.Minute + time.Second)},
		}}
		if diff := cmp.Diff(want, s.Get(item)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the store records the trigger of a reconcile [V4]", func(t *testing.T) {
		s := NewStore(0)
		var got []string
		for _, at := range []time.Duration{0, 30 * time.Second, 92 * time.Second, 10 * time.Minute} {
			addReconcile(s, item, began.Add(at), time.Minute)
		}
		addReconcile(s, item, began.Add(11*time.Minute), 0)
		addReconcile(s, item, began.Add(20*time.Minute), 0)
		addReconcile(s, item, began.Add(30*time.Minute), 0)
		for _, r := range s.Get(item) {
			got = append(got, r.Trigger)
		}
		if diff := cmp.Diff([]string{"start", "event", "timer", "timer", "event", "event", "event"}, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the store keeps only the next time of a reconcile that is too large [V4]", func(t *testing.T) {
		s := NewStore(0)
		s.put(item, &Reconcile{Reason: strings.Repeat("x", maxReconcileBytes)}, began.Add(time.Minute))
		if raw := s.raw(item); len(raw) != 0 {
			t.Errorf("kept %d: %q", len(raw), raw)
		}
		if got := s.getTrigger(item, began.Add(time.Minute)); got != TriggerTimer {
			t.Errorf("the next one is triggered by %s", got)
		}
	})
	t.Run("the store keeps the last 20 reconciles of an item [V4]", func(t *testing.T) {
		s := NewStore(0)
		for i := range 50 {
			addReconcile(s, item, began.Add(time.Duration(i)*time.Minute), 0)
		}
		got := s.Get(item)
		if len(got) != maxReconciles || !got[0].Began.Equal(began.Add(30*time.Minute)) {
			t.Errorf("got %d, the first of %s", len(got), got[0].Began)
		}
	})
	t.Run("the store forgets the items that were idle longest [V4]", func(t *testing.T) {
		s := NewStore(8 << 10)
		key := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: fmt.Sprint(i)} }
		for i := range 100 {
			addReconcile(s, key(0), began, 0)
			addReconcile(s, key(i), began, 0)
		}
		if s.bytes > s.limit || len(s.items) != s.recent.Len() || s.Get(key(0)) == nil || s.Get(key(99)) == nil || s.Get(key(1)) != nil {
			t.Errorf("%d of %d bytes, %d items", s.bytes, s.limit, len(s.items))
		}
		sum := 0
		for _, element := range s.items {
			sum += entryBytes
			for _, raw := range element.Value.(*entry).reconciles {
				sum += len(raw)
			}
		}
		if sum != s.bytes {
			t.Errorf("counted %d bytes, there are %d", s.bytes, sum)
		}
	})
}

func TestReconcileIsBounded(t *testing.T) {
	for name, hostile := range map[string]string{"long": strings.Repeat("x", 100_000), "escaped": strings.Repeat("\"\\\x1b\u202e", 1000)} {
		t.Run(name+" [V4]", func(t *testing.T) {
			s := NewStore(0)
			rec := s.Begin(item, began)
			for range 1000 {
				rec.AddPhase(Phase{Name: "phase", Verdict: "proceed", Micros: int64(time.Hour / time.Microsecond), Failed: true}, began)
				rec.AddHook(Hook{Type: hostile, Name: hostile, Effect: "continue", Micros: int64(time.Hour / time.Microsecond), Failed: true}, began)
			}
			e := Result{Now: began.Add(time.Hour), Reason: hostile, Action: hostile, Result: "failed"}
			for range 1000 {
				e.Codes = append(e.Codes, hostile)
				e.Calls = append(e.Calls, Call{Cluster: hostile, Verb: hostile, Resource: hostile, Count: 1})
			}
			rec.Complete(e)
			for _, raw := range s.raw(item) {
				if len(raw) > maxReconcileBytes || !json.Valid(raw) || strings.Contains(string(raw), "\\u001b") {
					t.Errorf("%d bytes: %s", len(raw), raw)
				}
			}
			if got := s.Get(item); len(got) != 1 || got[0].Omitted == 0 || len(got[0].Phases) == 0 {
				t.Errorf("Get(...) = %+v, want one reconcile without all phases", got)
			}
		})
	}
}

func TestRecordingEndsOnce(t *testing.T) {
	t.Run("a recording ends once, and nil records nothing [V4]", func(t *testing.T) {
		s := NewStore(0)
		rec := s.Begin(item, began)
		rec.Complete(Result{Now: began, Result: "done"})
		rec.AddPhase(Phase{Name: "late", Verdict: "stop"}, began)
		rec.Complete(Result{Now: began, Result: "error"})
		if got := s.Get(item); len(got) != 1 || got[0].Result != "done" || len(got[0].Phases) != 0 {
			t.Errorf("Get(...) = %+v, want one reconcile with the result done", got)
		}
		var none *Store
		rec = none.Begin(item, began)
		rec.AddPhase(Phase{Name: "a", Verdict: "b"}, began)
		rec.AddHook(Hook{Type: "a", Name: "b"}, began)
		rec.Complete(Result{})
		if none.Get(item) != nil || FromContext(NewContext(t.Context(), rec)) != nil {
			t.Error("a nil store has something")
		}
	})
}

// BenchmarkAddPhase measures the cost of recording one phase of the pipeline.
func BenchmarkAddPhase(b *testing.B) {
	s := NewStore(0)
	ctx := NewContext(b.Context(), s.Begin(item, began))
	rec := FromContext(ctx)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%maxPhases == 0 {
			rec = s.Begin(item, began)
		}
		rec.AddPhase(Phase{Name: "should-reconcile", Verdict: "proceed", Micros: 1}, began)
	}
}

// BenchmarkReconcile measures the cost of recording and encoding a reconcile with eight phases.
func BenchmarkReconcile(b *testing.B) {
	s := NewStore(0)
	b.ReportAllocs()
	for b.Loop() {
		rec := s.Begin(item, began)
		for range 8 {
			rec.AddPhase(Phase{Name: "should-reconcile", Verdict: "proceed", Micros: 1}, began)
		}
		rec.Complete(Result{Now: began, Result: "done", Calls: []Call{{Cluster: "target", Verb: "patch", Resource: "deployments.apps", Count: 2}}})
	}
}
