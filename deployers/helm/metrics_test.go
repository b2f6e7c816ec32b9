// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

func TestMetrics(t *testing.T) {
	t.Run("have a number of time series that does not depend on the items [Ex36]", testSeries)
}

func testSeries(t *testing.T) {
	m := NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.collectors()...)
	began := time.Now()
	for range 100 {
		for _, kind := range []operationKind{kindInstall, kindUpgrade, kindRollback, kindUninstall, kindRepair} {
			for _, result := range []string{resultSucceeded, resultFailed, resultInterrupted} {
				op := &operation{operationRecord: operationRecord{done: make(chan any)}, kind: kind, began: began}
				m.begin(op)
				m.begin(op)
				op.end(began.Add(2*time.Second), result)
				op.end(began, resultFailed)
			}
		}
		m.ObserveChart(chart.Download)
		m.ObserveChart(chart.CacheHit)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		got[family.GetName()] = describeFamily(family)
	}
	want := map[string]string{
		"deployerkit_helm_operations_total":           "15 series with [kind result], sum 1500",
		"deployerkit_helm_operation_duration_seconds": "5 series with [kind], sum 3000",
		"deployerkit_helm_operations_under_way":       "5 series with [kind], sum 0",
		"deployerkit_helm_charts_total":               "2 series with [event], sum 200",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected series (-want +got):\n%s", diff)
	}
}

// describeFamily returns the number of time series of a metric, the names of their labels, and the sum of their values.
func describeFamily(family *dto.MetricFamily) string {
	var labels []string
	for _, label := range family.GetMetric()[0].GetLabel() {
		labels = append(labels, label.GetName())
	}
	sum := 0.0
	for _, one := range family.GetMetric() {
		sum += one.GetCounter().GetValue() + one.GetGauge().GetValue() + one.GetHistogram().GetSampleSum()
	}
	return fmt.Sprintf("%d series with %v, sum %v", len(family.GetMetric()), labels, sum)
}
