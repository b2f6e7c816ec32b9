// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func newEnvironment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestFromEnvironment(t *testing.T) {
	const secret = "s3cret"
	for name, tc := range map[string]struct {
		env  map[string]string
		want *Settings
		err  string
	}{
		"nothing is set": {nil, nil, ""},
		"an endpoint": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"},
			&Settings{Endpoint: "http://c:4318/v1/traces", Timeout: 10 * time.Second, Headers: map[string]string{}}, "",
		},
		"all variables for traces": {
			map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/x", "OTEL_EXPORTER_OTLP_TIMEOUT": "500",
				"OTEL_EXPORTER_OTLP_HEADERS": "a=1, authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			},
			&Settings{Endpoint: "https://c/x", Timeout: 500 * time.Millisecond, Gzip: true, Headers: map[string]string{"a": "1", "authorization": "Bearer x"}}, "",
		},
		"disabled SDK":          {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, nil, ""},
		"exporter none":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, nil, ""},
		"another exporter":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "zipkin"}, nil, "want otlp or none"},
		"gRPC":                  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, nil, "only OTLP over HTTP"},
		"invalid URL":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, nil, "want a URL"},
		"invalid timeout":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "-1"}, nil, "milliseconds"},
		"invalid header":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": secret}, nil, "key=value"},
		"invalid second header": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=" + secret + "%0d%0ab: c"}, nil, "key=value"},
		"missing certificates":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none"}, nil, "OTEL_EXPORTER_OTLP_CERTIFICATE"},
	} {
		t.Run(name+" [V9]", func(t *testing.T) {
			got, err := FromEnvironment(newEnvironment(tc.env))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), secret) {
					t.Errorf("want an error with %q, got %v", tc.err, err)
				}
				return
			}
			if got != nil {
				got.TLS = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v: -want, +got:\n%s", err, diff)
			}
		})
	}
}

func TestExport(t *testing.T) {
	var body map[string]any
	var header http.Header
	code := http.StatusOK
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		header = req.Header
		var from io.Reader = req.Body
		if header.Get("Content-Encoding") == "gzip" {
			from, _ = gzip.NewReader(req.Body)
		}
		_ = json.NewDecoder(from).Decode(&body)
		w.WriteHeader(code)
	}))
	defer collector.Close()
	for name, compressed := range map[string]bool{"plain": false, "compressed": true} {
		t.Run("the exporter sends spans, "+name+" [V9]", func(t *testing.T) {
			exporter := New(Settings{Endpoint: collector.URL, Timeout: time.Minute, Gzip: compressed, Headers: map[string]string{"tenant": "a"}})
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithResource(sdkresource.NewSchemaless(attribute.String("service.name", "me"))))
			ctx, parent := provider.Tracer("lib").Start(t.Context(), "reconcile")
			_, span := provider.Tracer("lib").Start(ctx, "fetch")
			span.SetAttributes(attribute.Int("n", 1), attribute.Bool("b", true), attribute.Float64("f", 1.5), attribute.StringSlice("s", []string{"x"}))
			span.SetStatus(codes.Error, "failed")
			span.End()
			spans := body["resourceSpans"].([]any)[0].(map[string]any)
			if diff := cmp.Diff(map[string]any{"attributes": []any{map[string]any{"key": "service.name", "value": map[string]any{"stringValue": "me"}}}}, spans["resource"]); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			sent := spans["scopeSpans"].([]any)[0].(map[string]any)["spans"].([]any)[0].(map[string]any)
			want := map[string]any{
				"traceId": span.SpanContext().TraceID().String(), "spanId": span.SpanContext().SpanID().String(), "parentSpanId": parent.SpanContext().SpanID().String(),
				"name": "fetch", "kind": 1.0, "startTimeUnixNano": sent["startTimeUnixNano"], "endTimeUnixNano": sent["endTimeUnixNano"],
				"status": map[string]any{"code": 2.0, "message": "failed"}, "attributes": []any{
					map[string]any{"key": "n", "value": map[string]any{"intValue": "1"}},
					map[string]any{"key": "b", "value": map[string]any{"boolValue": true}},
					map[string]any{"key": "f", "value": map[string]any{"doubleValue": 1.5}},
					map[string]any{"key": "s", "value": map[string]any{"stringValue": `["x"]`}},
				},
			}
			if diff := cmp.Diff(want, sent); diff != "" || header.Get("Tenant") != "a" {
				t.Errorf("%v: -want, +got:\n%s", header, diff)
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the error for a rejected export hides the address [V9]", func(t *testing.T) {
		code = http.StatusForbidden
		exporter := New(Settings{Endpoint: collector.URL + "/s3cret", Timeout: time.Minute})
		provider := sdktrace.NewTracerProvider()
		_, span := provider.Tracer("lib").Start(t.Context(), "x")
		err := exporter.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{span.(sdktrace.ReadOnlySpan)})
		if err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error = %v, want the code 403 without the secret", err)
		}
		collector.Close()
		if err = exporter.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{span.(sdktrace.ReadOnlySpan)}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error = %v, want an error without the secret", err)
		}
	})
}
