// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a handler's call, in metrics.
const (
	resultOK       = "ok"
	resultWaiting  = "waiting"  // it returned a deployerlib.WaitFor
	resultError    = "error"    // the handler said so
	resultRefused  = "refused"  // its answer was
	resultUnstable = "unstable" // its answer was taken, but it changes without reason
)

// metrics of a deployer. Their labels are bounded, but for the opt-in one per item, which goes with the item.
type metrics struct {
	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	informers prometheus.GaugeFunc
	items     *itemErrors // nil: switched off
}

func newMetrics(informers *atomic.Int32, memories *memories, perItem bool) *metrics {
	m := &metrics{
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

// register makes the metrics known.
func (m *metrics) register(to prometheus.Registerer) error {
	all := []prometheus.Collector{m.calls, m.seconds, m.informers}
	if m.items != nil {
		all = append(all, m.items)
	}
	for i, one := range all {
		if err := to.Register(one); err != nil {
			for _, before := range all[:i] {
				to.Unregister(before)
			}
			return fmt.Errorf("register metrics of handlers: %w", err)
		}
	}
	return nil
}

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
	e.memories.forgetGone(context.Background()) // reads the cache only; a collector is given no context
	for _, m := range e.memories.list() {
		if n := m.errorCount(); n > 0 {
			out <- prometheus.MustNewConstMetric(itemErrorsDesc, prometheus.CounterValue, float64(n), m.key.Namespace, m.key.Name)
		}
	}
}
