// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

// roundTripperFunc is a function that implements http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// fakeObserver records the end of a watch.
type fakeObserver struct{ ended error }

func (*fakeObserver) Suspend()                     {}
func (*fakeObserver) Resume()                      {}
func (*fakeObserver) Complete()                    {}
func (o *fakeObserver) HandleLimitError(err error) { o.ended = err }

// newTransport returns a Transport for a target that responds to each request with the given status and body.
func newTransport(l Limits, status int, body io.Reader) *Transport {
	respond := func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), ContentLength: -1,
		}, nil
	}
	return &Transport{
		Target: NewTarget(Options{
			Limits: l, Memory: NewMemory(l), Owner: budget.Owner{Namespace: "garden", Target: "a"}, Path: "/clusters/a",
			Timeout: time.Minute, Clock: clock.RealClock{}, CountExceeded: func(string) {},
		}),
		Next: roundTripperFunc(respond), Observer: &fakeObserver{},
	}
}

// newLimits returns limits that no test exceeds by accident.
func newLimits() Limits {
	return Limits{
		Object: 8 << 20, Page: 8 << 20, List: 64 << 20, Discovery: 8 << 20, Reading: 32 << 20, Decoding: 96 << 20,
		WatchObjects: 20_000, WatchEvents: 1000, WatchBytes: 4 << 20,
	}
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// endlessReader is the body of a response that never ends. A hostile server may send such a body.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }

// expectOption requires an Error that names the option that sets the limit.
func expectOption(t *testing.T, err error, option string) {
	t.Helper()
	over, ok := errors.AsType[*Error](err)
	if !ok || over.Option != option || !strings.Contains(err.Error(), "targets.Limits."+option+" or the flag "+GetFlag(option)+" raises this limit") {
		t.Errorf("got the error %v, want one that names the option %s and its flag", err, option)
	}
}

func expectUnused(t *testing.T, b *budget.Budget) {
	t.Helper()
	if used, _ := b.GetUsage(); used != 0 {
		t.Errorf("%d bytes of the budget are in use, want 0", used)
	}
}

// TestEndlessResponsesAreRejected checks that a single response cannot fill the memory of the deployer.
func TestEndlessResponsesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct{ method, url, option string }{
		"Discovery limits the groups [F2]":                    {http.MethodGet, "/apis", "Discovery"},
		"Discovery limits the groups below a path [F2]":       {http.MethodGet, "/clusters/a/api", "Discovery"},
		"Discovery limits the kinds of a group [F2]":          {http.MethodGet, "/clusters/a/apis/apps/v1", "Discovery"},
		"Discovery limits the core kinds [F2]":                {http.MethodGet, "/api/v1", "Discovery"},
		"Discovery limits an OpenAPI document [F2]":           {http.MethodGet, "/clusters/a/openapi/v3/apis/apps/v1", "Discovery"},
		"Page limits a list [F2]":                             {http.MethodGet, "/api/v1/configmaps", "Page"},
		"Page limits a list below a path [F2]":                {http.MethodGet, "/clusters/a/apis/apps/v1/namespaces/a/deployments", "Page"},
		"Page limits a list of namespaces [F2]":               {http.MethodGet, "/api/v1/namespaces", "Page"},
		"Page limits the deletion of a list [F2]":             {http.MethodDelete, "/api/v1/namespaces/a/configmaps", "Page"},
		"Object limits a namespace [F2]":                      {http.MethodGet, "/api/v1/namespaces/a", "Object"},
		"Object limits an object [F2]":                        {http.MethodGet, "/api/v1/namespaces/a/configmaps/b", "Object"},
		"Object limits a cluster-scoped object [F2]":          {http.MethodGet, "/apis/example.org/v1/things/b", "Object"},
		"Object limits a subresource [F2]":                    {http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/b/scale", "Object"},
		"Object limits the response to a creation [F2]":       {http.MethodPost, "/api/v1/namespaces/a/configmaps", "Object"},
		"Object limits the response to a patch [F2]":          {http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", "Object"},
		"Page limits a watch whose status is not 200 [F2]":    {http.MethodGet, "/api/v1/configmaps?watch=true", "Page"},
		"Object limits one event of a watch with 200 OK [F2]": {http.MethodGet, "/api/v1/configmaps?watch=1", "Object"},
	} {
		t.Run(name, func(t *testing.T) {
			status := http.StatusOK
			if strings.HasSuffix(tc.url, "watch=true") {
				status = http.StatusAccepted
			}
			transport := newTransport(newLimits(), status, endlessReader{})
			resp, err := transport.RoundTrip(httptest.NewRequest(tc.method, tc.url, http.NoBody))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			expectOption(t, err, tc.option)
			expectUnused(t, transport.Memory.Reading)
		})
	}
	t.Run("truncates an error response [F2]", func(t *testing.T) {
		resp, err := newTransport(newLimits(), http.StatusConflict, endlessReader{}).RoundTrip(httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/a", http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != MaxErrorSize {
			t.Errorf("read %d bytes and the error %v, want %d bytes", got, err, MaxErrorSize)
		}
	})
}

// TestDecodingWaitsForMemory checks that a response counts against the budget for decoding until the call has ended,
// and not only until the body has been read.
func TestDecodingWaitsForMemory(t *testing.T) {
	text := `{"kind":"ConfigMap","items":[` + strings.Repeat(`{"a":{}},`, 5000) + `{}]}`
	send := func(ctx context.Context, target *Target) error {
		transport := newTransport(target.Limits, http.StatusOK, strings.NewReader(text))
		transport.Target = target
		resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a/configmaps/b", http.NoBody).WithContext(ctx))
		if err != nil {
			return err
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != text {
			t.Errorf("read %d bytes and the error %v, want %d bytes", len(got), err, len(text))
		}
		return resp.Body.Close()
	}
	newTarget := func(decoding int64) *Target {
		l := newLimits()
		l.Decoding = decoding
		return newTransport(l, 0, nil).Target
	}
	t.Run("memory is in use until a Reservation is released [F2]", func(t *testing.T) {
		target := newTarget(96 << 20)
		ctx, reservation := WithReservation(t.Context())
		if err := send(ctx, target); err != nil {
			t.Fatal(err)
		}
		if used, _ := target.Memory.Decoding.GetUsage(); used < int64(3*len(text)) {
			t.Errorf("%d bytes are in use for %d bytes of text that may still be decoded", used, len(text))
		}
		reservation.Release()
		expectUnused(t, target.Memory.Decoding)
	})
	t.Run("memory is in use for a while without a Reservation [F2]", func(t *testing.T) {
		target := newTarget(96 << 20)
		if err := send(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, func() bool { used, _ := target.Memory.Decoding.GetUsage(); return used == 0 })
	})
	t.Run("memory in use makes the next response wait, and its call can be canceled [F2]", func(t *testing.T) {
		target := newTarget(5 << 20)
		ctx, reservation := WithReservation(t.Context())
		if err := send(ctx, target); err != nil {
			t.Fatal(err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := send(canceled, target); !errors.Is(err, context.Canceled) || !budget.IsExhausted(err) {
			t.Errorf("got the error %v, want one that names the budget and wraps context.Canceled", err)
		}
		reservation.Release()
		if err := send(t.Context(), target); err != nil {
			t.Errorf("after the release: %v", err)
		}
	})
	t.Run("never exceeds the budget for a single response [F2]", func(t *testing.T) {
		expectOption(t, send(t.Context(), newTarget(1<<20)), "Decoding")
	})
}

// TestTimeout checks that a request ends if the response does not arrive in time, and that an opened watch has no
// timeout.
func TestTimeout(t *testing.T) {
	for name, query := range map[string]string{"ends a request without a response": "", "ends a watch without a response": "?watch=true"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := newTransport(newLimits(), http.StatusOK, nil)
				transport.Next = roundTripperFunc(func(req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return nil, req.Context().Err()
				})
				if _, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/configmaps"+query, http.NoBody)); !errors.Is(err, ErrNoResponse) {
					t.Errorf("got the error %v, want ErrNoResponse", err)
				}
			})
		})
	}
	t.Run("ends a large response whose rest does not arrive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			transport := newTransport(newLimits(), http.StatusOK, nil)
			transport.Next = roundTripperFunc(func(req *http.Request) (*http.Response, error) {
				body, server := io.Pipe()
				go func() {
					_, _ = server.Write(make([]byte, smallResponseSize+1))
					<-req.Context().Done()
					_ = server.CloseWithError(req.Context().Err())
				}()
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: -1}, nil
			})
			start := time.Now()
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/configmaps", http.NoBody))
			if took := time.Since(start); !errors.Is(err, errSlow) || took != largeResponseTime {
				t.Errorf("got the error %v after %s, want %v after %s", err, took, errSlow, largeResponseTime)
			}
			expectUnused(t, transport.Memory.Reading)
		})
	})
	t.Run("a large response that ends just in time does not fail for lack of memory [F2]", func(t *testing.T) {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				arrival := make(chan struct{})
				time.AfterFunc(largeResponseTime, func() { close(arrival) }) // of the synctest bubble
				end := readerFunc(func([]byte) (int, error) {
					<-arrival
					return 0, io.EOF
				})
				transport := newTransport(newLimits(), http.StatusOK, io.MultiReader(strings.NewReader(`["`+strings.Repeat("a", smallCost)+`"]`), end))
				used, err := transport.Memory.Decoding.Acquire(t.Context(), budget.Owner{Namespace: "other"}, transport.Limits.Decoding)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(2*largeResponseTime, used.Release)
				_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/configmaps", http.NoBody))
				if err != nil && (budget.IsExhausted(err) || !errors.Is(err, errSlow)) {
					t.Errorf("got the error %v, want none or %v", err, errSlow)
				}
			})
		}
	})
	t.Run("does not end an open watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			resp := openWatch(t, newTransport(newLimits(), http.StatusOK, body), "")
			go func() {
				<-time.After(time.Hour) // of the synctest bubble
				_, _ = io.WriteString(server, `{"type":"ADDED"}`)
				_ = server.Close()
			}()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != `{"type":"ADDED"}`+"\n" {
				t.Errorf("read %q and the error %v, want one event", got, err)
			}
		})
	})
}

// waitUntil waits until the condition is true.
func waitUntil(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); !condition(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition is not true after 10 seconds")
		}
	}
}
