// SPDX-License-Identifier: Apache-2.0

// Package otlp sends spans to an OpenTelemetry collector with OTLP over HTTP, encoded as JSON. It is much smaller than
// the exporter of the OpenTelemetry project, which needs gRPC and Protobuf.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxAnswer is the maximum number of bytes of a response that are read.
const maxAnswer = 64 << 10

// Exporter sends spans. It implements the interface SpanExporter of the OpenTelemetry SDK.
type Exporter struct {
	settings Settings
	client   *http.Client
}

// New returns an exporter with the settings that [FromEnvironment] returned.
func New(s Settings) *Exporter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.TLS
	return &Exporter{settings: s, client: &http.Client{
		Transport: transport, Timeout: s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ExportSpans sends spans, without retries. Its errors contain neither the address of the collector nor headers.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := encode(spans)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if e.settings.Gzip {
		if body, err = compress(body); err != nil {
			return fmt.Errorf("compress spans: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.Endpoint, bytes.NewReader(body))
	if err != nil {
		return errors.New("send spans: the endpoint is not valid")
	}
	for key, value := range e.settings.Headers {
		req.Header.Set(key, value)
	}
	req.Header.Set("Content-Type", "application/json")
	if e.settings.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return errors.New("send spans: the collector does not answer")
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // otherwise, the connection cannot be reused
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send spans: the collector answers with status %d", resp.StatusCode)
	}
	return nil
}

// Shutdown implements SpanExporter. It only closes idle connections, because the caller exports the remaining spans
// before it calls Shutdown.
func (e *Exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

var _ sdktrace.SpanExporter = (*Exporter)(nil)
