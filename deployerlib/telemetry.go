// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"slices"
	"time"

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
	set.initialize(string(args.Type))
	set.workers.WithLabelValues(string(args.Type)).Set(float64(args.Options.MaxConcurrentReconciles))
	return &telemetry{
		typ: string(args.Type), clock: args.Clock, metrics: set, observe: args.Observe, history: args.History,
		tracer: args.TracerProvider.Tracer("github.com/deployerkit/deployerkit/deployerlib"),
	}, nil
}

// observeStep passes a step to Observe.
func (t *telemetry) observeStep(s Step) {
	if t.observe != nil {
		t.observe(s)
	}
}

// startAttempt begins the span of an attempt. The returned function ends the span.
func (t *telemetry) startAttempt(ctx context.Context, item types.NamespacedName) (context.Context, func(attemptEnd)) {
	ctx, span := t.tracer.Start(ctx, "reconcile")
	if span.IsRecording() {
		span.SetAttributes(attribute.String("deployItem", item.String()), attribute.String("deployerType", t.typ))
	}
	return ctx, func(e attemptEnd) {
		t.countErrors(e)
		t.metrics.passes.WithLabelValues(t.typ, e.getLabel()).Inc()
		endSpan(span, e.err)
	}
}

// countErrors counts the error of an attempt under each of its codes.
func (t *telemetry) countErrors(e attemptEnd) {
	text, errorCodes := e.getFailure()
	if text == "" {
		return
	}
	if len(errorCodes) == 0 {
		t.metrics.errors.WithLabelValues(t.typ, codeNone).Inc()
	}
	for _, code := range errorCodes {
		label := string(code)
		if !slices.Contains(errorCodeLabels, label) {
			label = codeOther
		}
		t.metrics.errors.WithLabelValues(t.typ, label).Inc()
	}
}

// recordRun records the end of a run, and how long ago it was handed out.
func (t *telemetry) recordRun(e attemptEnd, after time.Duration) {
	result := "succeeded"
	if e.outcome != nil && !e.outcome.Done {
		result = "failed"
	}
	t.metrics.runs.WithLabelValues(t.typ, string(e.decision.Action), result).Observe(max(after, 0).Seconds())
}

// startRecording begins to record an attempt and to count its requests. The returned context carries the record and the
// counter.
func (t *telemetry) startRecording(ctx context.Context, a *attempt) context.Context {
	ctx, a.calls = calls.With(ctx, t.clock.Now)
	a.record = t.history.Begin(a.key, a.began)
	return history.NewContext(ctx, a.record)
}

// recordAttempt ends the record of an attempt.
func (t *telemetry) recordAttempt(a *attempt, e attemptEnd, n nextReconcile, now time.Time) {
	if a.record == nil {
		return
	}
	end := history.Result{Now: now, Reason: string(e.decision.Reason), Result: e.getLabel(), HasNext: n.after > 0 || n.immediate, After: n.after}
	if e.outcome != nil {
		end.Action = string(e.decision.Action)
	}
	_, errorCodes := e.getFailure()
	for _, code := range errorCodes {
		end.Codes = append(end.Codes, string(code))
	}
	for _, c := range a.calls.ListCounts() {
		end.Calls = append(end.Calls, history.Call{
			Cluster: c.Cluster, Verb: c.Verb, Resource: c.Resource, Count: c.N,
			Start: c.Began.Sub(a.began).Microseconds(), Micros: c.Ended.Sub(c.Began).Microseconds(),
		})
	}
	a.record.Complete(end)
}

// getLabel returns the result of an attempt in one word, for the metric and the history.
func (e attemptEnd) getLabel() string {
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

// observePhase begins to observe a phase. The returned function records the end of the phase.
func (t *telemetry) observePhase(ctx context.Context, a *attempt, name string) (context.Context, func(verdict, error)) {
	began := t.clock.Now()
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(v verdict, err error) {
		took := t.clock.Since(began)
		t.metrics.phases.WithLabelValues(t.typ, name).Observe(took.Seconds())
		a.record.AddPhase(history.Phase{Name: name, Verdict: v.String(), Micros: took.Microseconds(), Failed: err != nil}, began)
		s := Step{Item: a.key, Kind: StepPhase, Name: name, Outcome: v.String(), Err: err}
		if name == "contract" || name == "pause" {
			s.Reason = a.getDecision().Reason
		}
		t.observeStep(s)
		endSpan(span, err)
	}
}

// observeCall begins to observe a deployer call. The returned function records the end of the call.
func (t *telemetry) observeCall(ctx context.Context, item types.NamespacedName, action contract.Action) (context.Context, func(error)) {
	began := t.clock.Now()
	name := string(action)
	ctx, span := t.tracer.Start(ctx, "call "+name)
	return ctx, func(err error) {
		t.metrics.calls.WithLabelValues(t.typ, name).Observe(t.clock.Since(began).Seconds())
		t.observeStep(Step{Item: item, Kind: StepCall, Name: name, Err: err})
		endSpan(span, err)
	}
}

// withHookObserver returns a context with an observer that reports each call of a hook to metrics, spans, Observe, the
// record and the function `note`.
func (t *telemetry) withHookObserver(ctx context.Context, item types.NamespacedName, note func(extension.HookCall)) context.Context {
	return extension.WithObserver(ctx, extension.Observer{Now: t.clock.Now, Done: func(ctx context.Context, call extension.HookCall) {
		note(call)
		failure, effect := call.Err, getHookEffect(call.Result)
		if _, _, waits := AsWait(failure); waits {
			failure, effect = nil, "wait"
		}
		t.metrics.hooks.WithLabelValues(t.typ, string(call.Type), call.Name).Observe(call.Duration.Seconds())
		end := t.clock.Now()
		hook := history.Hook{Type: string(call.Type), Name: call.Name, Effect: effect, Micros: call.Duration.Microseconds(), Failed: failure != nil}
		history.FromContext(ctx).AddHook(hook, end.Add(-call.Duration))
		t.observeStep(Step{Item: item, Kind: StepHook, Name: string(call.Type) + " " + call.Name, Outcome: effect, Err: call.Err})
		_, span := t.tracer.Start(ctx, "hook "+call.Name, trace.WithTimestamp(end.Add(-call.Duration)))
		endSpan(span, failure)
	}})
}

// getHookEffect returns the effect of a hook result.
func getHookEffect(res *extension.HookResult) string {
	switch {
	case res == nil:
		return ""
	case res.AbortReconcile:
		return "abort"
	}
	return "continue"
}

// RecordMissingRight counts a write for which the rights are missing.
func (t *telemetry) RecordMissingRight(resource string) {
	t.metrics.missingRights.WithLabelValues(t.typ, resource).Inc()
}

// RecordWrite records a write that is about to be sent.
func (t *telemetry) RecordWrite(item types.NamespacedName, changes itempatch.Changes) {
	if changes.Status != nil {
		t.RecordRequest(callStatus)
		t.observeStep(Step{Item: item, Kind: StepWrite, Name: callStatus})
	}
	if changes.Metadata != nil {
		t.RecordRequest(callMetadata)
		t.observeStep(Step{Item: item, Kind: StepWrite, Name: callMetadata})
	}
}

// RecordRequest records a request that is about to be sent.
func (t *telemetry) RecordRequest(verb string) { t.metrics.apiCalls.WithLabelValues(t.typ, verb).Inc() }
func (t *telemetry) recordPanic()              { t.metrics.panics.WithLabelValues(t.typ).Inc() }
func (t *telemetry) recordQuarantine(delta int) {
	t.metrics.quarantined.WithLabelValues(t.typ).Add(float64(delta))
}

// addWaiting counts items that wait for a share of the workers.
func (t *telemetry) addWaiting(delta int) {
	t.metrics.waiting.WithLabelValues(t.typ).Add(float64(delta))
}

func (t *telemetry) recordRetry(action contract.Action) {
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
