// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/deployerkit/deployerkit/internal/otlp"
)

// flushTimeout limits how long the process waits for the export of the last spans before it ends.
const flushTimeout = 5 * time.Second

// newTracerProvider returns a TracerProvider that exports spans if the standard variables of OpenTelemetry contain an
// endpoint, and nil otherwise. The caller must call the function `end` before the process ends.
func newTracerProvider(ctx context.Context, name string, log logr.Logger, env func(string) (string, bool)) (provider *sdktrace.TracerProvider, end func(), err error) {
	settings, err := otlp.FromEnvironment(env)
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	if settings == nil {
		return nil, func() {}, nil
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", name)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	log = log.WithName("traces")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Info("traces could not be exported and are lost", "error", err.Error()) }))
	provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(otlp.New(*settings)), sdktrace.WithResource(about))
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Info("traces could not be exported and are lost", "error", err.Error())
		}
	}, nil
}
