// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// These are the results of a handler's call in metrics.
const (
	resultOK       = "ok"
	resultWaiting  = "waiting"  // it returned a deployerlib.WaitFor
	resultError    = "error"    // the handler returned an error
	resultRefused  = "refused"  // its response was refused
	resultUnstable = "unstable" // its response was accepted, but it changes without reason
)

// metrics are the metrics of a deployer. Their labels are bounded, except for the optional label per item, which is
// removed with the item.
type metrics struct {
	registerer prometheus.Registerer

	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	informers prometheus.GaugeFunc
	items     *itemErrors // nil if metrics per item are off
}

func newMetrics(registerer prometheus.Registerer, informers *atomic.Int32, memories *memories, perItem bool) *metrics {
	m := &metrics{
		registerer: registerer,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployerkit_declarative_calls_total", Help: "Calls of the handler, by function (sync, finalize) and result (ok, waiting, unstable, refused, error).",
		}, []string{"function", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployerkit_declarative_call_seconds", Help: "How long calls of the handler took, by function.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 10, 7),
		}, []string{"function"}),
		informers: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "deployerkit_declarative_informers", Help: "Informers of children, over all targets.",
		}, func() float64 { return float64(informers.Load()) }),
	}
	if perItem {
		m.items = &itemErrors{memories: memories}
	}
	return m
}

// all returns the collectors.
func (m *metrics) all() []prometheus.Collector {
	all := []prometheus.Collector{m.calls, m.seconds, m.informers}
	if m.items != nil {
		all = append(all, m.items)
	}
	return all
}

// Start registers the metrics until the manager ends.
func (m *metrics) Start(ctx context.Context) error {
	for _, one := range m.all() {
		if err := m.registerer.Register(one); err != nil {
			return fmt.Errorf("register metrics of handlers: %w", err)
		}
		defer m.registerer.Unregister(one)
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false, so the metrics start before the deployer.
func (m *metrics) NeedLeaderElection() bool { return false }

// called counts a call.
func (m *metrics) called(function, result string, took time.Duration) {
	m.calls.WithLabelValues(function, result).Inc()
	m.seconds.WithLabelValues(function).Observe(took.Seconds())
}

var itemErrorsDesc = prometheus.NewDesc("deployerkit_declarative_item_errors_total",
	"Calls of the handler that failed, by deploy item. Only with Options.ItemMetrics.", []string{"namespace", "name"}, nil)

// itemErrors counts errors per item. An item that is gone has no metric.
type itemErrors struct{ memories *memories }

// Describe implements prometheus.Collector.
func (e *itemErrors) Describe(out chan<- *prometheus.Desc) { out <- itemErrorsDesc }

// Collect implements prometheus.Collector.
func (e *itemErrors) Collect(out chan<- prometheus.Metric) {
	e.memories.forgetGone(context.Background()) // only reads the cache; a collector gets no context
	for _, m := range e.memories.list() {
		if n := m.errorCount(); n > 0 {
			out <- prometheus.MustNewConstMetric(itemErrorsDesc, prometheus.CounterValue, float64(n), m.key.Namespace, m.key.Name)
		}
	}
}
