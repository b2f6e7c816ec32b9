// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// These are the values of the label "result" in metrics. They describe how a call of the handler ended.
const (
	resultOK       = "ok"
	resultWaiting  = "waiting"  // the handler returned a deployerlib.WaitFor
	resultError    = "error"    // the handler returned an error
	resultRefused  = "refused"  // the response of the handler was invalid
	resultUnstable = "unstable" // the response was accepted, but the handler is unstable
)

// metrics contains the metrics of a deployer. The number of time series is bounded, except for the optional series of
// the items. The series of an item is removed when the item is deleted.
type metrics struct {
	registerer prometheus.Registerer

	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	all     []prometheus.Collector // the metrics to be registered, including calls and seconds
}

// newMetrics returns the metrics of a deployer. The function `failedCalls` returns the number of failed calls for each
// item. If it is nil, there are no metrics for each item.
func newMetrics(registerer prometheus.Registerer, watches func() int, failedCalls func() map[types.NamespacedName]uint64) *metrics {
	m := &metrics{
		registerer: registerer,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployerkit_declarative_calls_total", Help: "Calls of the handler, by function (sync, finalize, repeat) and result (ok, waiting, unstable, refused, error).",
		}, []string{"function", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployerkit_declarative_call_seconds", Help: "Duration of the calls of the handler, by function.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 10, 7),
		}, []string{"function"}),
	}
	m.all = []prometheus.Collector{m.calls, m.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deployerkit_declarative_informers", Help: "Number of watches of children in all targets.",
	}, func() float64 { return float64(watches()) })}
	if failedCalls != nil {
		m.all = append(m.all, itemErrors(failedCalls))
	}
	return m
}

// Start registers the metrics. When the manager ends, it unregisters them.
func (m *metrics) Start(ctx context.Context) error {
	for _, one := range m.all {
		if err := m.registerer.Register(one); err != nil {
			return fmt.Errorf("register metrics of handlers: %w", err)
		}
		defer m.registerer.Unregister(one)
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false, so that the metrics are registered before the deployer starts.
func (m *metrics) NeedLeaderElection() bool { return false }

// recordCall records a call of the handler.
func (m *metrics) recordCall(function, result string, took time.Duration) {
	m.calls.WithLabelValues(function, result).Inc()
	m.seconds.WithLabelValues(function).Observe(took.Seconds())
}

var itemErrorsDesc = prometheus.NewDesc("deployerkit_declarative_item_errors_total",
	"Failed calls of the handler, by deploy item. Only exported if Options.ItemMetrics is set.", []string{"namespace", "name"}, nil)

// itemErrors collects the number of failed calls that the function returns for each item that exists.
type itemErrors func() map[types.NamespacedName]uint64

// Describe implements prometheus.Collector.
func (e itemErrors) Describe(out chan<- *prometheus.Desc) { out <- itemErrorsDesc }

// Collect implements prometheus.Collector.
func (e itemErrors) Collect(out chan<- prometheus.Metric) {
	for item, n := range e() {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(itemErrorsDesc, prometheus.CounterValue, float64(n), item.Namespace, item.Name)
		}
	}
}
