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

func TestImmediateDelay(t *testing.T) {
	for i := range 9 {
		if got := immediateDelay(i + 1); got != 0 {
			t.Errorf("requeue %d waits %s", i+1, got)
		}
	}
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := immediateDelay(10 + i); got != want*time.Millisecond {
			t.Errorf("requeue %d waits %s, want %s", 10+i, got, want*time.Millisecond)
		}
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
