// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

// metricSet contains the metrics of the library. The number of label values is limited: labels contain the deployer
// type, the phase, the action, a known error code, or the type and name of a hook, but never the name of an item.
type metricSet struct {
	passes      *prometheus.CounterVec
	runs        *prometheus.HistogramVec
	errors      *prometheus.CounterVec
	phases      *prometheus.HistogramVec
	calls       *prometheus.HistogramVec
	hooks       *prometheus.HistogramVec
	apiCalls    *prometheus.CounterVec
	retries     *prometheus.CounterVec
	panics      *prometheus.CounterVec
	quarantined *prometheus.GaugeVec
	waiting     *prometheus.GaugeVec
	workers     *prometheus.GaugeVec

	missingRights *prometheus.CounterVec
	items         *itemCollector
}

// These are values of the label `code` of the metric deployerkit_errors_total, besides the codes of Landscaper.
const (
	codeNone  = "none"  // the error has no code
	codeOther = "other" // the code is none of Landscaper's codes
)

// errorCodeLabels are the values of the label `code`.
var errorCodeLabels = []string{
	codeNone, codeOther,
	string(lsv1alpha1.ErrorUnauthorized), string(lsv1alpha1.ErrorCleanupResources), string(lsv1alpha1.ErrorConfigurationProblem),
	string(lsv1alpha1.ErrorInternalProblem), string(lsv1alpha1.ErrorTimeout), string(lsv1alpha1.ErrorCyclicDependencies),
	string(lsv1alpha1.ErrorWebhook), string(lsv1alpha1.ErrorUnfinished), string(lsv1alpha1.ErrorForInfoOnly), string(lsv1alpha1.ErrorNoRetry),
}

// durationBuckets are the buckets of the duration of a step, in seconds. runBuckets are those of the duration of a run,
// which may last for hours.
var (
	durationBuckets = prometheus.ExponentialBuckets(0.0001, 4, 10)
	runBuckets      = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
)

// newMetrics registers the metrics. Deployers with the same registry share the metrics.
func newMetrics(reg prometheus.Registerer) (*metricSet, error) {
	const typ = "deployer_type"
	m := &metricSet{
		passes:        newCounter("passes_total", "Reconciles of deploy items by result.", typ, "result"),
		runs:          newHistogram("run_duration_seconds", "Time from the hand-out of a run of a deploy item to its end, by action and result.", runBuckets, typ, "action", "result"),
		errors:        newCounter("errors_total", "Reconciles of deploy items that ended with an error, by code.", typ, "code"),
		phases:        newHistogram("phase_duration_seconds", "Duration of the phases of a reconcile.", durationBuckets, typ, "phase"),
		calls:         newHistogram("call_duration_seconds", "Duration of the actions of the deployer.", durationBuckets, typ, "action"),
		hooks:         newHistogram("hook_duration_seconds", "Duration of extension hooks.", durationBuckets, typ, "hook_type", "hook"),
		apiCalls:      newCounter("api_calls_total", "Requests about deploy items to the Landscaper API server.", typ, "call"),
		retries:       newCounter("retries_total", "Actions that failed and are retried.", typ, "action"),
		panics:        newCounter("panics_total", "Panics of deployers and hooks that were recovered.", typ),
		quarantined:   newGauge("quarantined_items", "Number of items with a running call that ignores its cancellation.", typ),
		missingRights: newCounter("missing_rights_total", "Writes that failed because neither patch nor update of the resource is allowed.", typ, "resource"),
		waiting:       newGauge("share_waiting_items", "Number of items that wait for a share of the workers.", typ),
		workers:       newGauge("workers", "Configured number of items that are processed at the same time.", typ),
		items:         newItemCollector(typ),
	}
	return m, errors.Join(
		register(reg, &m.passes), register(reg, &m.runs), register(reg, &m.errors), register(reg, &m.phases), register(reg, &m.calls), register(reg, &m.hooks),
		register(reg, &m.apiCalls), register(reg, &m.retries), register(reg, &m.panics), register(reg, &m.quarantined), register(reg, &m.waiting),
		register(reg, &m.missingRights), register(reg, &m.workers), register(reg, &m.items),
	)
}

// initialize exports the counters of a deployer with the value zero, so that the function increase of Prometheus also
// counts the first event.
func (m *metricSet) initialize(typ string) {
	m.panics.WithLabelValues(typ)
	m.quarantined.WithLabelValues(typ)
	m.waiting.WithLabelValues(typ)
	for _, code := range errorCodeLabels {
		m.errors.WithLabelValues(typ, code)
	}
	for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionAbort} {
		m.retries.WithLabelValues(typ, string(action))
	}
	for _, resource := range []string{"DeployItem", "DeployItem/status"} {
		m.missingRights.WithLabelValues(typ, resource)
	}
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deployerkit", Name: name, Help: help}, labels)
}

func newGauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "deployerkit", Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "deployerkit", Name: name, Help: help, Buckets: buckets}, labels)
}

// register registers a metric. If an equal metric is already registered, register sets *metric to that metric.
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

// itemCollector exports the number of items by progress, and the age of the oldest run in progress, of all running
// controllers. A standby replica exports neither.
type itemCollector struct {
	items, oldest *prometheus.Desc

	mu          sync.Mutex
	controllers []*itemSource
}

// itemSource is the source of the metrics of one controller.
type itemSource struct {
	typ     string
	tracker *itemstate.Tracker
	clock   clock.PassiveClock
}

func newItemCollector(typ string) *itemCollector {
	return &itemCollector{
		items: prometheus.NewDesc("deployerkit_items",
			"Number of deploy items by progress: unfinished, succeeded, failed.", []string{typ, "progress"}, nil),
		oldest: prometheus.NewDesc("deployerkit_oldest_run_seconds",
			"Time since the hand-out of the oldest run in progress, or 0 if there is none.", []string{typ}, nil),
	}
}

// start exports the metrics of a controller until ctx ends.
func (c *itemCollector) start(ctx context.Context, source *itemSource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controllers = append(c.controllers, source)
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.controllers = slices.DeleteFunc(c.controllers, func(one *itemSource) bool { return one == source })
	})
}

// Describe implements prometheus.Collector.
func (c *itemCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.items
	out <- c.oldest
}

// Collect implements prometheus.Collector.
func (c *itemCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts, ages := map[string]map[itemstate.Progress]int{}, map[string]time.Duration{}
	for _, source := range c.controllers {
		s := source.tracker.Summarize()
		if counts[source.typ] == nil {
			counts[source.typ] = map[itemstate.Progress]int{}
		}
		for progress, n := range s.Items {
			counts[source.typ][progress] += n
		}
		if !s.HandedOut.IsZero() {
			ages[source.typ] = max(ages[source.typ], source.clock.Since(s.HandedOut))
		}
	}
	for typ, items := range counts {
		for _, progress := range []itemstate.Progress{itemstate.ProgressUnfinished, itemstate.ProgressSucceeded, itemstate.ProgressFailed} {
			out <- prometheus.MustNewConstMetric(c.items, prometheus.GaugeValue, float64(items[progress]), typ, string(progress))
		}
		out <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, ages[typ].Seconds(), typ)
	}
}
