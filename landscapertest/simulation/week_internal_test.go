// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// daily is a deployer that reconciles each item once a day.
type daily struct{ counting }

// ExtensionHooks returns the hook that reconciles the items.
func (*daily) ExtensionHooks() extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}
	hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(continuousreconcile.FromSpec(
		func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
			return &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: 24 * time.Hour}}, nil
		})))
	return hooks
}

// usage is what a process uses.
type usage struct {
	heap       uint64
	goroutines int
	queue      float64
}

func measure(t *testing.T) usage {
	t.Helper()
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: m.HeapAlloc, goroutines: runtime.NumGoroutine()}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "workqueue_depth" {
			for _, metric := range family.GetMetric() {
				u.queue += metric.GetGauge().GetValue()
			}
		}
	}
	return u
}

// TestWeek measures memory, so it needs no race detector, with which a request takes several times as long.
func TestWeek(t *testing.T) {
	t.Run("memory, goroutines and the queue do not grow in a week of continuous reconciles [Sc2]", func(t *testing.T) {
		isolate(t)
		const days, items = 7, 1000
		synctest.Test(t, func(t *testing.T) {
			w, deployer := newQuietWorld(t), &daily{}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.runWithoutElection(ctx, w.newProcess("deployer", false), deployer) }()
			w.deployAll(t, items)
			pass := func(days int) (usage, int64) {
				before := deployer.calls.Load()
				w.sleep(time.Duration(days) * 24 * time.Hour)
				return measure(t), deployer.calls.Load() - before
			}
			before, _ := pass(1)
			after, calls := pass(days - 1)
			t.Logf("after a day: %+v, after a week: %+v, %d calls", before, after, calls)
			if want := int64(items * (days - 2)); calls < want { // the period has a jitter
				t.Errorf("want at least %d calls, got %d", want, calls)
			}
			if after.heap > before.heap+before.heap/20 || after.goroutines > before.goroutines || after.queue > before.queue {
				t.Errorf("the process has grown: %+v after a day, %+v after a week", before, after)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			w.sleep(10 * maxFaultDuration)
		})
	})
}
