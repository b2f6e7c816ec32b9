// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

func TestGetHandOutTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d).Truncate(time.Second)} }
	for name, test := range map[string]struct {
		status lsv1alpha1.DeployItemStatus
		want   time.Time
	}{
		"without a job, the request counts":                   {lsv1alpha1.DeployItemStatus{}, now},
		"the job was handed out in the second of the request": {lsv1alpha1.DeployItemStatus{JobID: "1", JobIDGenerationTime: ago(0)}, now},
		"the job was handed out before the process started":   {lsv1alpha1.DeployItemStatus{JobID: "1", JobIDGenerationTime: ago(time.Hour)}, ago(time.Hour - time.Second).Time},
		"the last job is finished, so the run has no job":     {lsv1alpha1.DeployItemStatus{JobID: "1", JobIDFinished: "1", JobIDGenerationTime: ago(time.Hour)}, now},
		"the clock of Landscaper is ahead":                    {lsv1alpha1.DeployItemStatus{JobID: "1", JobIDGenerationTime: ago(-time.Hour)}, now},
	} {
		if got := getHandOutTime(&lsv1alpha1.DeployItem{Status: test.status}, now); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestItemCollector(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, tracker := newItemCollector("deployer_type"), itemstate.NewTracker()
	ctx, cancel := context.WithCancel(t.Context())
	c.start(ctx, &itemSource{typ: "a", tracker: tracker, clock: clk})
	tracker.Get(types.NamespacedName{Name: "done"}).RecordProgress(itemstate.ProgressSucceeded)
	tracker.Get(types.NamespacedName{Name: "runs"}).MarkUnfinished(clk.Now().Add(-time.Minute))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	want := map[string]float64{
		`[a failed]`: 0, `[a succeeded]`: 1, `[a unfinished]`: 1, // deployerkit_items
		`[a]`: 60, // deployerkit_oldest_run_seconds
	}
	if diff := cmp.Diff(want, gatherGauges(t, registry)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	cancel()
	for deadline := time.Now().Add(time.Minute); len(gatherGauges(t, registry)) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the metrics of a stopped controller are still exported")
		}
	}
}

// gatherGauges returns the values of all gauges of a registry by the values of their labels.
func gatherGauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			out[fmt.Sprint(labels)] = m.GetGauge().GetValue()
		}
	}
	return out
}
