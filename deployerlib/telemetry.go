// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/calls"
)

// StepKind is the kind of a Step.
type StepKind string

// These are the kinds of steps.
const (
	StepPhase StepKind = "phase" // a phase of the pipeline ended
	StepHook  StepKind = "hook"  // a hook returned
	StepCall  StepKind = "call"  // an action of the deployer returned
	StepWrite StepKind = "write" // a write to the item is about to be sent
)

// Step is one event in a reconcile. DeployerArgs.Observe receives the steps in order. A log of the steps explains a
// reconcile.
type Step struct {
	Item types.NamespacedName
	Kind StepKind
	// Name is the name of a phase, "<Type> <name>" for a hook, the action of a call, or "status" or "metadata" for a
	// write.
	Name string
	// Outcome is the verdict of a phase ("proceed", "stop", "drop"), the effect of a hook ("", "abort", "continue",
	// "wait"), or "".
	Outcome string
	// Reason is why a run is due or is not due. It is set for the contract phase, and for the pause phase if that phase
	// stops the attempt.
	Reason contract.Reason
	// Err is the error of the step, or nil.
	Err error
}

// These are values of the label `call` of the metric deployerkit_api_calls_total. Package statuswriter declares the
// other values.
const (
	callStatus   = "status"
	callMetadata = "metadata"
)

// telemetry reports to metrics, spans and Observe.
type telemetry struct {
	typ     string
	clock   clock.PassiveClock
	tracer  trace.Tracer
	metrics *metricSet
	observe func(Step)
	history *history.Store
}

func newTelemetry(args *DeployerArgs) (*telemetry, error) {
	set, err := newMetrics(args.Registerer)
	if err != nil {
		return nil, err
	}
	return &telemetry{
		typ: string(args.Type), clock: args.Clock, metrics: set, observe: args.Observe, history: args.History,
		tracer: args.TracerProvider.Tracer("github.com/deployerkit/deployerkit/deployerlib"),
	}, nil
}

// step passes a step to Observe.
func (t *telemetry) step(s Step) {
	if t.observe != nil {
		t.observe(s)
	}
}

// attempt begins the span of an attempt. The returned function ends the span.
func (t *telemetry) attempt(ctx context.Context, item types.NamespacedName) (context.Context, func(ending)) {
	ctx, span := t.tracer.Start(ctx, "reconcile")
	if span.IsRecording() {
		span.SetAttributes(attribute.String("deployItem", item.String()), attribute.String("deployerType", t.typ))
	}
	return ctx, func(e ending) {
		t.metrics.passes.WithLabelValues(t.typ, e.label()).Inc()
		endSpan(span, e.err)
	}
}

// record begins to record an attempt and to count its requests. The returned context carries the record and the
// counter.
func (t *telemetry) record(ctx context.Context, a *attempt) context.Context {
	ctx, a.calls = calls.With(ctx)
	a.record = t.history.Begin(a.key, a.began)
	return history.With(ctx, a.record)
}

// recorded ends the record of an attempt.
func (t *telemetry) recorded(a *attempt, e ending, n next, now time.Time) {
	if a.record == nil {
		return
	}
	end := history.End{Now: now, Reason: string(e.decision.Reason), Result: e.label(), HasNext: n.after > 0 || n.immediate, After: n.after}
	if e.outcome != nil {
		end.Action = string(e.decision.Action)
	}
	_, errorCodes := e.failureText()
	for _, code := range errorCodes {
		end.Codes = append(end.Codes, string(code))
	}
	for _, c := range a.calls.Counts() {
		end.Calls = append(end.Calls, history.Call{Cluster: c.Cluster, Verb: c.Verb, Resource: c.Resource, Count: c.N})
	}
	a.record.End(end)
}

// label returns the result of an attempt in one word, for the metric and the history.
func (e ending) label() string {
	switch {
	case e.err != nil:
		return "error"
	case e.outcome == nil:
		return "nothing"
	case e.outcome.Err != nil:
		return "failed"
	case e.outcome.Waiting:
		return "waiting"
	}
	return "done"
}

// phase begins to observe a phase. The returned function records the end of the phase.
func (t *telemetry) phase(ctx context.Context, a *attempt, name string) (context.Context, func(verdict, error)) {
	began := t.clock.Now()
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(v verdict, err error) {
		took := t.clock.Since(began)
		t.metrics.phases.WithLabelValues(t.typ, name).Observe(took.Seconds())
		a.record.Phase(name, v.String(), took, err != nil)
		s := Step{Item: a.key, Kind: StepPhase, Name: name, Outcome: v.String(), Err: err}
		if name == "contract" || name == "pause" {
			s.Reason = a.decision.Reason
		}
		t.step(s)
		endSpan(span, err)
	}
}

// call begins to observe a deployer call. The returned function records the end of the call.
func (t *telemetry) call(ctx context.Context, item types.NamespacedName, action contract.Action) (context.Context, func(error)) {
	began := t.clock.Now()
	name := string(action)
	ctx, span := t.tracer.Start(ctx, "call "+name)
	return ctx, func(err error) {
		t.metrics.calls.WithLabelValues(t.typ, name).Observe(t.clock.Since(began).Seconds())
		t.step(Step{Item: item, Kind: StepCall, Name: name, Err: err})
		endSpan(span, err)
	}
}

// hooks returns a context with an observer that reports each call of a hook to metrics, spans, Observe, the record and
// the function `note`.
func (t *telemetry) hooks(ctx context.Context, item types.NamespacedName, note func(extension.Call)) context.Context {
	return extension.WithObserver(ctx, extension.Observer{Now: t.clock.Now, Done: func(ctx context.Context, call extension.Call) {
		note(call)
		failure, effect := call.Err, effectOf(call.Result)
		if _, _, waits := AsWait(failure); waits {
			failure, effect = nil, "wait"
		}
		t.metrics.hooks.WithLabelValues(t.typ, string(call.Type), call.Name).Observe(call.Duration.Seconds())
		history.From(ctx).Hook(string(call.Type), call.Name, effect, call.Duration, failure != nil)
		t.step(Step{Item: item, Kind: StepHook, Name: string(call.Type) + " " + call.Name, Outcome: effect, Err: call.Err})
		end := t.clock.Now()
		_, span := t.tracer.Start(ctx, "hook "+call.Name, trace.WithTimestamp(end.Add(-call.Duration)))
		endSpan(span, failure)
	}})
}

// effectOf returns the effect of a hook result.
func effectOf(res *extension.HookResult) string {
	switch {
	case res == nil:
		return ""
	case res.AbortReconcile:
		return "abort"
	}
	return "continue"
}

// MissingRight counts a write for which the rights are missing.
func (t *telemetry) MissingRight(resource string) {
	t.metrics.missingRights.WithLabelValues(t.typ, resource).Inc()
}

// Write records a write that is about to be sent.
func (t *telemetry) Write(item types.NamespacedName, changes itempatch.Changes) {
	if changes.Status != nil {
		t.Request(callStatus)
		t.step(Step{Item: item, Kind: StepWrite, Name: callStatus})
	}
	if changes.Metadata != nil {
		t.Request(callMetadata)
		t.step(Step{Item: item, Kind: StepWrite, Name: callMetadata})
	}
}

// Request records a request that is about to be sent.
func (t *telemetry) Request(verb string) { t.metrics.apiCalls.WithLabelValues(t.typ, verb).Inc() }
func (t *telemetry) panicked()           { t.metrics.panics.WithLabelValues(t.typ).Inc() }
func (t *telemetry) quarantined(delta int) {
	t.metrics.quarantined.WithLabelValues(t.typ).Add(float64(delta))
}

// waiting counts items that wait for a share of the workers.
func (t *telemetry) waiting(delta int) {
	t.metrics.waiting.WithLabelValues(t.typ).Add(float64(delta))
}

func (t *telemetry) retry(action contract.Action) {
	t.metrics.retries.WithLabelValues(t.typ, string(action)).Inc()
}

// endSpan ends a span and records the kind of its error. The text of an error is not recorded, because it may contain
// data of the deployer.
func endSpan(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, "failed")
	}
	span.End()
}

// metricSet contains the metrics of the library. The number of label values is limited: labels contain the deployer
// type, the phase, the action, or the type and name of a hook, but never the name of an item.
type metricSet struct {
	passes      *prometheus.CounterVec
	phases      *prometheus.HistogramVec
	calls       *prometheus.HistogramVec
	hooks       *prometheus.HistogramVec
	apiCalls    *prometheus.CounterVec
	retries     *prometheus.CounterVec
	panics      *prometheus.CounterVec
	quarantined *prometheus.GaugeVec
	waiting     *prometheus.GaugeVec

	missingRights *prometheus.CounterVec
}

// newMetrics registers the metrics. Deployers with the same registry share the metrics.
func newMetrics(reg prometheus.Registerer) (*metricSet, error) {
	const typ = "deployer_type"
	m := &metricSet{
		passes:        counter("passes_total", "Reconciles of deploy items by result.", typ, "result"),
		phases:        histogram("phase_duration_seconds", "Duration of the phases of a reconcile.", typ, "phase"),
		calls:         histogram("call_duration_seconds", "Duration of the actions of the deployer.", typ, "action"),
		hooks:         histogram("hook_duration_seconds", "Duration of extension hooks.", typ, "hook_type", "hook"),
		apiCalls:      counter("api_calls_total", "Requests about deploy items to the Landscaper API server.", typ, "call"),
		retries:       counter("retries_total", "Actions that failed and are retried.", typ, "action"),
		panics:        counter("panics_total", "Panics of deployers and hooks that were recovered.", typ),
		quarantined:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "deployerkit", Name: "quarantined_items", Help: "Number of items with a running call that ignores its cancellation."}, []string{typ}),
		missingRights: counter("missing_rights_total", "Writes that failed because neither patch nor update of the resource is allowed.", typ, "resource"),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "deployerkit", Name: "share_waiting_items", Help: "Number of items that wait for a share of the workers.",
		}, []string{typ}),
	}
	return m, errors.Join(
		register(reg, &m.passes), register(reg, &m.phases), register(reg, &m.calls), register(reg, &m.hooks),
		register(reg, &m.apiCalls), register(reg, &m.retries), register(reg, &m.panics), register(reg, &m.quarantined), register(reg, &m.waiting), register(reg, &m.missingRights),
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
