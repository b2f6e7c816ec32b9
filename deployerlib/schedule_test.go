// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBackoffAfter(t *testing.T) {
	exact := func(d time.Duration) time.Duration { return d }
	b := Backoff{Min: time.Second, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := b.after(failures, exact); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := (Backoff{Min: time.Hour, Max: time.Hour}).after(1, exact); got != time.Hour {
		t.Errorf("with equal bounds: %s", got)
	}
	if got := (Backoff{Min: 1 << 62, Max: 1<<63 - 1}).after(5, exact); got != 1<<63-1 {
		t.Errorf("an overflow gave %s", got)
	}
	for range 1000 {
		if got := withJitter(time.Minute); got < 54*time.Second || got > 66*time.Second {
			t.Fatalf("jitter gave %s for a minute, want ±10 %%", got)
		}
	}
}

func TestImmediately(t *testing.T) {
	s := &itemState{}
	for i := range 9 {
		if got := s.immediately(); got != 0 {
			t.Errorf("requeue %d waits %s", i+1, got)
		}
	}
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := s.immediately(); got != want*time.Millisecond {
			t.Errorf("waits %s, want %s", got, want*time.Millisecond)
		}
	}
	s.calm()
	if got := s.immediately(); got != 0 {
		t.Errorf("after a calm pass: %s", got)
	}
}

func TestPriorityOf(t *testing.T) {
	item := func(op lsv1alpha1.Operation, deleting bool) *lsv1alpha1.DeployItem {
		di := &lsv1alpha1.DeployItem{}
		if op != "" {
			di.Annotations = map[string]string{lsv1alpha1.OperationAnnotation: string(op)}
		}
		if deleting {
			di.DeletionTimestamp = &metav1.Time{Time: moment}
		}
		return di
	}
	tests := map[string]struct {
		di   *lsv1alpha1.DeployItem
		want int
	}{
		"job":             {item("", false), 0},
		"deletion":        {item("", true), 100},
		"abort":           {item(contract.AbortOperation, false), 100},
		"force-reconcile": {item(lsv1alpha1.ForceReconcileOperation, false), 100},
		"reconcile":       {item(lsv1alpha1.ReconcileOperation, false), 100},
		"test-reconcile":  {item(lsv1alpha1.TestReconcileOperation, false), 100},
		"something else":  {item("else", false), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := priorityOf(test.di); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestGate(t *testing.T) {
	seen, other := &lsv1alpha1.DeployItem{}, &lsv1alpha1.DeployItem{}
	other.Generation = 2
	fresh := func() *itemState {
		s := &itemState{failures: 3, immediate: 3}
		s.begin(&run{})
		s.end(printOf(seen), true, moment.Add(time.Minute))
		return s
	}
	t.Run("a pop that comes too early waits for the rest", func(t *testing.T) {
		s := fresh()
		if got := s.gate(seen, moment.Add(20*time.Second)); got != 40*time.Second {
			t.Errorf("waits %s", got)
		}
		if s.failures != 3 {
			t.Error("the backoff started over")
		}
	})
	t.Run("in time it passes", func(t *testing.T) {
		if got := fresh().gate(seen, moment.Add(time.Minute)); got != 0 {
			t.Errorf("waits %s", got)
		}
	})
	t.Run("a new print passes and starts the backoff over", func(t *testing.T) {
		s := fresh()
		if got := s.gate(other, moment); got != 0 || s.failures != 0 || s.immediate != 0 {
			t.Errorf("waits %s, %d failures", got, s.failures)
		}
	})
	t.Run("a trigger opens it, for one pass", func(t *testing.T) {
		s := fresh()
		s.trigger()
		if got := s.gate(seen, moment); got != 0 {
			t.Errorf("waits %s", got)
		}
		s.begin(&run{})
		s.end(printOf(seen), true, moment.Add(time.Minute))
		if got := s.gate(seen, moment); got != time.Minute {
			t.Errorf("waits %s", got)
		}
	})
	t.Run("a trigger that comes while a pass runs is not lost", func(t *testing.T) {
		s := fresh()
		s.begin(&run{})
		s.trigger()
		s.end(printOf(seen), true, moment.Add(time.Minute))
		if got := s.gate(seen, moment); got != 0 {
			t.Errorf("waits %s", got)
		}
	})
	t.Run("a pass that met a foreign change leaves it open", func(t *testing.T) {
		s := fresh()
		s.begin(&run{})
		s.end(printOf(seen), false, moment.Add(time.Minute))
		if got := s.gate(seen, moment); got != 0 {
			t.Errorf("waits %s", got)
		}
	})
}
