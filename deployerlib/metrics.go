// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metricSet holds the metrics of the library. Labels are bounded: deployer
// type, phase, action, hook type and name, never the name of an item.
type metricSet struct {
	passes      *prometheus.CounterVec
	phases      *prometheus.HistogramVec
	calls       *prometheus.HistogramVec
	hooks       *prometheus.HistogramVec
	apiCalls    *prometheus.CounterVec
	retries     *prometheus.CounterVec
	panics      *prometheus.CounterVec
	quarantined *prometheus.GaugeVec
	sharing     *prometheus.GaugeVec
}

// newMetrics registers the metrics; deployers on one registry share them.
func newMetrics(reg prometheus.Registerer) (*metricSet, error) {
	const typ = "deployer_type"
	m := &metricSet{
		passes:      counter("passes_total", "Passes over deploy items by result.", typ, "result"),
		phases:      histogram("phase_duration_seconds", "How long the phases of a pass take.", typ, "phase"),
		calls:       histogram("call_duration_seconds", "How long the actions of the deployer take.", typ, "action"),
		hooks:       histogram("hook_duration_seconds", "How long extension hooks take.", typ, "hook_type", "hook"),
		apiCalls:    counter("api_calls_total", "Requests about deploy items to the Landscaper API server.", typ, "call"),
		retries:     counter("retries_total", "Actions that failed and are retried.", typ, "action"),
		panics:      counter("panics_total", "Panics of deployers and hooks that were contained.", typ),
		quarantined: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "deployerkit", Name: "quarantined_items", Help: "Items with a call that ignores its cancellation."}, []string{typ}),
		sharing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "deployerkit", Name: "share_waiting_items", Help: "Items that wait for a share of the workers.",
		}, []string{typ}),
	}
	return m, errors.Join(
		register(reg, &m.passes), register(reg, &m.phases), register(reg, &m.calls), register(reg, &m.hooks),
		register(reg, &m.apiCalls), register(reg, &m.retries), register(reg, &m.panics), register(reg, &m.quarantined), register(reg, &m.sharing),
	)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deployerkit", Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "deployerkit", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
	}, labels)
}

// register registers a metric, or takes the one that is registered already.
func register[T prometheus.Collector](reg prometheus.Registerer, metric *T) error {
	err := reg.Register(*metric)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := already.ExistingCollector.(T); ok {
			*metric = same
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metric: %w", err)
	}
	return nil
}
