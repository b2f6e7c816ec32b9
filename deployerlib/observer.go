// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/patch"
)

// StepKind says what a Step is about.
type StepKind string

// The kinds of steps.
const (
	StepPhase StepKind = "phase" // a phase of the pipeline ended
	StepHook  StepKind = "hook"  // a hook returned
	StepCall  StepKind = "call"  // an action of the deployer returned
	StepWrite StepKind = "write" // a write to the item is about to be sent
)

// Step is one thing that happened in a pass. DeployerArgs.Observe gets them in
// order; they are what an explanation of a pass is made of.
type Step struct {
	Item types.NamespacedName
	Kind StepKind
	// Name is the phase, "<Type> <hook name>", the action, or "status" and "metadata".
	Name string
	// Outcome is the verdict of a phase ("proceed", "stop", "drop"), the effect of a hook ("", "abort", "continue"), or "".
	Outcome string
	// Reason is why the contract wanted a run or not; set on the contract phase, and on the pause phase when it stops.
	Reason string
	// Err is what went wrong, nil if nothing did.
	Err error
}

// Labels of deployerkit_api_calls_total.
const (
	callGet      = "get"
	callFence    = "fence"
	callStatus   = "status"
	callMetadata = "metadata"
)

// observer is the one place that tells metrics, spans and Observe what happens.
type observer struct {
	typ     string
	clock   clock.PassiveClock
	tracer  trace.Tracer
	metrics *metricSet
	observe func(Step)
}

func newObserver(args *DeployerArgs) (*observer, error) {
	set, err := newMetrics(args.Registerer)
	if err != nil {
		return nil, err
	}
	return &observer{
		typ: string(args.Type), clock: args.Clock, metrics: set, observe: args.Observe,
		tracer: args.TracerProvider.Tracer("github.com/deployerkit/deployerkit/deployerlib"),
	}, nil
}

// step hands a step on.
func (o *observer) step(s Step) {
	if o.observe != nil {
		o.observe(s)
	}
}

// pass begins the span of a pass; the returned func ends it.
func (o *observer) pass(ctx context.Context, c *cycle) (context.Context, func(passed)) {
	ctx, span := o.tracer.Start(ctx, "pass")
	if span.IsRecording() {
		span.SetAttributes(attribute.String("deployItem", c.key.String()), attribute.String("deployerType", o.typ))
	}
	return ctx, func(p passed) {
		o.metrics.passes.WithLabelValues(o.typ, c.resultLabel(p)).Inc()
		endSpan(span, p.err)
	}
}

// resultLabel is the result of a pass for the metric.
func (c *cycle) resultLabel(p passed) string {
	switch {
	case p.err != nil:
		return "error"
	case c.outcome == nil:
		return "nothing"
	case c.outcome.Err != nil:
		return "failed"
	case c.outcome.Waiting:
		return "waiting"
	}
	return "done"
}

// phase begins a phase; the returned func ends it.
func (o *observer) phase(ctx context.Context, c *cycle, name string) (context.Context, func(verdict, error)) {
	began := o.clock.Now()
	ctx, span := o.tracer.Start(ctx, name)
	return ctx, func(v verdict, err error) {
		o.metrics.phases.WithLabelValues(o.typ, name).Observe(o.clock.Since(began).Seconds())
		s := Step{Item: c.key, Kind: StepPhase, Name: name, Outcome: v.String(), Err: err}
		if name == "contract" || name == "pause" {
			s.Reason = c.decision.Reason
		}
		o.step(s)
		endSpan(span, err)
	}
}

// call begins a deployer call; the returned func ends it.
func (o *observer) call(ctx context.Context, c *cycle, action contract.Action) (context.Context, func(error)) {
	began := o.clock.Now()
	name := string(action)
	ctx, span := o.tracer.Start(ctx, "call "+name)
	return ctx, func(err error) {
		o.metrics.calls.WithLabelValues(o.typ, name).Observe(o.clock.Since(began).Seconds())
		o.step(Step{Item: c.key, Kind: StepCall, Name: name, Err: err})
		endSpan(span, err)
	}
}

// hooks puts the observation of hooks into the context.
func (o *observer) hooks(ctx context.Context, c *cycle) context.Context {
	return extension.WithObserver(ctx, extension.Observer{Now: o.clock.Now, Done: func(ctx context.Context, call extension.Call) {
		o.metrics.hooks.WithLabelValues(o.typ, string(call.Type), call.Name).Observe(call.Duration.Seconds())
		o.step(Step{Item: c.key, Kind: StepHook, Name: string(call.Type) + " " + call.Name, Outcome: effectOf(call.Result), Err: call.Err})
		end := o.clock.Now()
		_, span := o.tracer.Start(ctx, "hook "+call.Name, trace.WithTimestamp(end.Add(-call.Duration)))
		endSpan(span, call.Err)
	}})
}

// effectOf says what a hook asked for.
func effectOf(res *extension.HookResult) string {
	switch {
	case res == nil:
		return ""
	case res.AbortReconcile:
		return "abort"
	}
	return "continue"
}

// writes notes what is about to be sent.
func (o *observer) writes(c *cycle, changes patch.Changes) {
	if changes.Status != nil {
		o.apiCall(callStatus)
		o.step(Step{Item: c.key, Kind: StepWrite, Name: callStatus})
	}
	if changes.Metadata != nil {
		o.apiCall(callMetadata)
		o.step(Step{Item: c.key, Kind: StepWrite, Name: callMetadata})
	}
}

func (o *observer) apiCall(verb string) { o.metrics.apiCalls.WithLabelValues(o.typ, verb).Inc() }
func (o *observer) panicked()           { o.metrics.panics.WithLabelValues(o.typ).Inc() }

// sharing counts items that wait for a share of the workers.
func (o *observer) sharing(delta int) {
	o.metrics.sharing.WithLabelValues(o.typ).Add(float64(delta))
}

func (o *observer) quarantined(delta int) {
	o.metrics.quarantined.WithLabelValues(o.typ).Add(float64(delta))
}

func (o *observer) retry(action contract.Action) {
	o.metrics.retries.WithLabelValues(o.typ, string(action)).Inc()
}

// endSpan ends a span with its error. The text of an error may carry what a
// deployer put there, so only its kind is recorded.
func endSpan(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, "failed")
	}
	span.End()
}
