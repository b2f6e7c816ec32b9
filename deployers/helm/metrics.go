// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// Metrics are the metrics of a deployer. The values of all labels are constants of the deployer, so that the number of
// time series does not depend on the items.
type Metrics struct {
	operations *prometheus.CounterVec   // by kind and result
	durations  *prometheus.HistogramVec // by kind
	underWay   *prometheus.GaugeVec     // by kind
	charts     *prometheus.CounterVec   // by event
}

// The values of the label result of the counter for operations.
const (
	resultSucceeded   = "succeeded"
	resultFailed      = "failed"
	resultInterrupted = "interrupted"
)

// NewMetrics returns the metrics for Options.Metrics. The deployer registers them.
func NewMetrics() *Metrics {
	kind := []string{"kind"}
	return &Metrics{
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployerkit_helm_operations_total", Help: "Operations on releases that have ended, by kind and result.",
		}, []string{"kind", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployerkit_helm_operation_duration_seconds", Help: "Duration of the operations on releases that have ended, by kind.",
			Buckets: []float64{.1, .5, 1, 5, 10, 30, 60, 120, 300, 600, 1800},
		}, kind),
		underWay: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "deployerkit_helm_operations_under_way", Help: "Operations on releases that are under way, most of which wait for the target, by kind.",
		}, kind),
		charts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployerkit_helm_charts_total", Help: "Chart archives that were taken from the cache (cache_hit) or downloaded (download).",
		}, []string{"event"}),
	}
}

// ObserveChart counts an event of a source of charts. It is a value for chart.Options.Observe.
func (m *Metrics) ObserveChart(event chart.Event) { m.charts.WithLabelValues(string(event)).Inc() }

// collectors returns all metrics.
func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.operations, m.durations, m.underWay, m.charts}
}

// begin counts an operation that is under way. Further calls for the same operation do nothing.
func (m *Metrics) begin(op *operation) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.metrics != nil || op.ended {
		return
	}
	op.metrics = m
	m.underWay.WithLabelValues(string(op.kind)).Inc()
}

// end counts an operation that has ended. A zero time means that the time is not known.
func (m *Metrics) end(op *operation, now time.Time, result string) {
	kind := string(op.kind)
	m.underWay.WithLabelValues(kind).Dec()
	m.operations.WithLabelValues(kind, result).Inc()
	if !now.IsZero() {
		m.durations.WithLabelValues(kind).Observe(now.Sub(op.began).Seconds())
	}
}

// metricsServer registers metrics while a manager runs.
type metricsServer struct {
	metrics    *Metrics
	registerer prometheus.Registerer
}

// Start registers the metrics until ctx ends.
func (s metricsServer) Start(ctx context.Context) error {
	for _, c := range s.metrics.collectors() {
		err := s.registerer.Register(c)
		if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !again {
			return fmt.Errorf("register metrics: %w", err)
		}
		if err == nil {
			defer s.registerer.Unregister(c)
		}
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false, so that a replica that is not the leader exposes the metrics, too.
func (metricsServer) NeedLeaderElection() bool { return false }
