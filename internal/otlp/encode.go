// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// These types represent the OTLP message ExportTraceServiceRequest in JSON. In this encoding, IDs are hexadecimal, and
// 64-bit integers are strings.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Status       status     `json:"status"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// encode returns the request for the given spans. All spans must have the same resource. encode ignores events and
// links of spans, because this library does not create any.
func encode(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	out := resourceSpans{SchemaURL: spans[0].Resource().SchemaURL(), Resource: resource{Attributes: toAttributes(spans[0].Resource().Attributes())}}
	places := map[scope]int{}
	for _, s := range spans {
		of := scope{Name: s.InstrumentationScope().Name, Version: s.InstrumentationScope().Version}
		i, known := places[of]
		if !known {
			i = len(out.ScopeSpans)
			places[of] = i
			out.ScopeSpans = append(out.ScopeSpans, scopeSpans{Scope: of})
		}
		out.ScopeSpans[i].Spans = append(out.ScopeSpans[i].Spans, toSpan(s))
	}
	return json.Marshal(request{ResourceSpans: []resourceSpans{out}})
}

func toSpan(s sdktrace.ReadOnlySpan) span {
	out := span{
		TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), Name: s.Name(), Kind: int(s.SpanKind()),
		Start: toNanos(s.StartTime()), End: toNanos(s.EndTime()), Attributes: toAttributes(s.Attributes()),
	}
	if s.Parent().HasSpanID() {
		out.ParentSpanID = s.Parent().SpanID().String()
	}
	switch s.Status().Code {
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status = status{Code: 2, Message: s.Status().Description}
	case codes.Unset:
	}
	return out
}

func toNanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func toAttributes(attributes []attribute.KeyValue) []keyValue {
	out := []keyValue{}
	for _, a := range attributes {
		var value map[string]any
		switch a.Value.Type() {
		case attribute.BOOL:
			value = map[string]any{"boolValue": a.Value.AsBool()}
		case attribute.INT64:
			value = map[string]any{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			value = map[string]any{"doubleValue": a.Value.AsFloat64()}
		default:
			value = map[string]any{"stringValue": a.Value.String()}
		}
		out = append(out, keyValue{Key: string(a.Key), Value: value})
	}
	return out
}
