// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// spanLog is a TracerProvider that records the names and errors of ended spans.
type spanLog struct {
	noop.TracerProvider
	mu    sync.Mutex
	ended []string
}

func (l *spanLog) Tracer(string, ...trace.TracerOption) trace.Tracer { return &loggingTracer{log: l} }

type loggingTracer struct {
	noop.Tracer
	log *spanLog
}

func (t *loggingTracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, &loggedSpan{log: t.log, name: name}
}

type loggedSpan struct {
	noop.Span
	log  *spanLog
	name string
}

func (*loggedSpan) IsRecording() bool                        { return true }
func (s *loggedSpan) SetAttributes(kv ...attribute.KeyValue) { s.name += " " + string(kv[0].Key) }
func (s *loggedSpan) SetStatus(_ codes.Code, text string)    { s.name += " " + text }
func (s *loggedSpan) End(...trace.SpanEndOption) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.ended = append(s.log.ended, s.name)
}

func TestEachPhaseAndHookHasASpan(t *testing.T) {
	spans := &spanLog{}
	args := DeployerArgs{Type: "example.org/t", TracerProvider: spans, Registerer: prometheus.NewRegistry()}
	args.Default()
	telemetry, err := newTelemetry(&args)
	if err != nil {
		t.Fatal(err)
	}
	hooks := extension.ReconcileExtensionHooks{}.
		RegisterHook(extension.WithName("audit", extension.OnStart(func(context.Context, logr.Logger) error { return nil })), extension.StartHook)
	w := &phaseRunner{hooks: hooks, telemetry: telemetry}
	a := &attempt{key: types.NamespacedName{Namespace: "n", Name: "i"}, hooks: hookState{result: &extension.HookResult{}}}
	ctx, end := telemetry.startAttempt(t.Context(), a.key)
	secret := errors.New("password=hunter2")
	_, _ = w.runPhase(ctx, a, &phase{name: "start", beforeHooks: hookTypes(extension.StartHook)})
	_, _ = w.runPhase(ctx, a, &phase{name: "fetch", do: func(context.Context, *attempt) (verdict, error) { return verdictStop, secret }})
	end(attemptEnd{err: secret})
	want := []string{"hook audit", "start", "fetch failed", "reconcile deployItem failed"}
	if !slices.Equal(spans.ended, want) {
		t.Errorf("ended spans %q, want %q: errors are marked, their text is kept out", spans.ended, want)
	}
}

func TestEachRunLogsOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		ending attemptEnd
		want   []string
	}{
		"done": {
			attemptEnd{outcome: &contract.Outcome{Final: true, Done: true}, decision: contract.Decision{Action: contract.ActionReconcile}},
			[]string{`"level"=0 "msg"="reconcile done"`, `"item"="n/i"`, `"action"="reconcile"`, `"phase"="Failed"`, `"duration"="2s"`, `"calls"=0`},
		},
		"unrecoverable failure": {
			attemptEnd{outcome: &contract.Outcome{Final: true, Err: &lsv1alpha1.Error{Message: "boom", Codes: []lsv1alpha1.ErrorCode{"ERR_TIMEOUT"}}}},
			[]string{`"level"=0 "msg"="reconcile failed"`, `"error"="boom"`, `"codes"=["ERR_TIMEOUT"]`, `"phase"="Failed"`},
		},
		"failure before a run":    {attemptEnd{err: errors.New("boom")}, []string{`"level"=0 "msg"="reconcile failed"`, `"error"="boom"`}},
		"item with nothing to do": {attemptEnd{}, []string{`"level"=1 "msg"="nothing to do"`}},
	} {
		t.Run(name+" [V7]", func(t *testing.T) {
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
			began := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
			tc.ending.after.item = &lsv1alpha1.DeployItem{}
			tc.ending.after.item.Status.Phase = "Failed"
			logAttempt(&attempt{key: types.NamespacedName{Namespace: "n", Name: "i"}, log: log, began: began}, tc.ending, began.Add(2*time.Second))
			if len(lines) != 1 {
				t.Fatalf("want one line, got %q", lines)
			}
			for _, want := range tc.want {
				if !strings.Contains(lines[0], want) {
					t.Errorf("want %s, got %s", want, lines[0])
				}
			}
		})
	}
}
