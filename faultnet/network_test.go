// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deployerkit/deployerkit/faultnet"
)

// TestFaults tests the effect of each fault on three requests of the same kind and on the stored object, with Wrap and
// with Proxy.
func TestFaults(t *testing.T) {
	const refused = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":"%s","code":%d}`
	said := func(code int, reason, message string) string {
		return fmt.Sprintf("%d "+refused, code, message, reason, code)
	}
	tests := map[string]struct {
		fault  faultnet.Fault
		method string
		want   []string
		stored int
	}{
		"conflict":   {faultnet.Conflict(), "PATCH", []string{"200 v1", said(409, "Conflict", "injected by the test"), "200 v2"}, 2},
		"token":      {faultnet.TokenExpired(), "GET", []string{"404", said(401, "Unauthorized", "injected by the test"), "404"}, 0},
		"status":     {faultnet.Status(503, "ServiceUnavailable"), "PUT", []string{"200 v1", said(503, "ServiceUnavailable", "injected by the test"), "200 v2"}, 2},
		"denied":     {faultnet.WebhookDenied("w"), "PATCH", []string{"200 v1", said(403, "Forbidden", `admission webhook \"w\" denied the request: injected by the test`), "200 v2"}, 2},
		"no webhook": {faultnet.WebhookFailed("w"), "PATCH", []string{"200 v1", said(500, "InternalError", `Internal error occurred: failed calling webhook \"w\": injected by the test`), "200 v2"}, 2},
		"reset":      {faultnet.Reset(), "PATCH", []string{"200 v1", "error", "200 v2"}, 2},
		"lost":       {faultnet.DropResponse(), "PATCH", []string{"200 v1", "error", "200 v3"}, 3},
		"timeout":    {faultnet.Timeout(time.Millisecond), "PATCH", []string{"200 v1", "error", "200 v2"}, 2},
		"delay":      {faultnet.Delay(time.Millisecond), "PATCH", []string{"200 v1", "200 v2", "200 v3"}, 3},
		"in place":   {faultnet.NewFault("break", faultnet.ReturnError(errBoom)), "PATCH", []string{"200 v1", "error", "200 v2"}, 2},
		"before":     {faultnet.KillBefore(), "PATCH", []string{"200 v1", "error", "error"}, 1},
		"after":      {faultnet.KillAfter(), "PATCH", []string{"200 v1", "error", "error"}, 2},
	}
	for name, test := range tests {
		for way, through := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				server := newFakeServer(t)
				network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Nth: 2, Fault: test.fault}}})
				u := newTestClient(t, through(network, &rest.Config{Host: server.URL}))
				got := []string{u.send(test.method, objectPath), u.send(test.method, objectPath), u.send(test.method, objectPath)}
				if diff := cmp.Diff(test.want, got); diff != "" || server.countObjects() != test.stored {
					t.Errorf("stored %d, want %d, -want +got:\n%s", server.countObjects(), test.stored, diff)
				}
			})
		}
	}
}

// TestStale checks that stale reads return only earlier responses.
func TestStale(t *testing.T) {
	for way, through := range ways {
		t.Run(way, func(t *testing.T) {
			server := newFakeServer(t)
			network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
				{Fault: faultnet.Stale(1), Nth: 4, Times: 2, Match: faultnet.Match{Name: "a"}},
				{Fault: faultnet.Stale(9), Match: faultnet.Match{Verb: "list"}},
			}})
			u := newTestClient(t, through(network, &rest.Config{Host: server.URL}))
			got := []string{}
			for _, step := range []string{
				"GET", "LIST", "LIST", "PATCH", "GET", "PATCH", "GET", "GET", "PATCH", "GET", "GET", "LIST", "LIST",
			} {
				path := objectPath
				if step == "LIST" {
					step, path = "GET", listPath
				}
				got = append(got, step+" "+u.send(step, path))
			}
			want := []string{
				"GET 404",
				`GET 200 {"metadata":{"resourceVersion":"1"},"items":["v0"]}`, `GET 200 {"metadata":{"resourceVersion":"2"},"items":["v0"]}`,
				"PATCH 200 v1", "GET 200 v1", "PATCH 200 v2", "GET 200 v2", "GET 200 v1", "PATCH 200 v3", "GET 200 v2", "GET 200 v3",
				`GET 200 {"metadata":{"resourceVersion":"1"},"items":["v0"]}`, `GET 200 {"metadata":{"resourceVersion":"4"},"items":["v3"]}`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestWatchFaults tests faults of watches in the JSON format and in the binary format, with Wrap and with Proxy.
func TestWatchFaults(t *testing.T) {
	tests := map[string]struct {
		fault faultnet.Fault
		read  int
		want  string
	}{
		"cut at once":      {faultnet.DropWatch(0), 3, "cut"},
		"cut after two":    {faultnet.DropWatch(2), 3, "e1 e2 cut"},
		"replay after two": {faultnet.ReplayWatch(2), 5, "e1 e2 e1 e2 e3"},
		"stall after one":  {faultnet.DelayWatchEvents(1, time.Millisecond), 3, "e1 e2 e3"},
	}
	for name, test := range tests {
		for way, through := range ways {
			for _, accept := range []string{"json", "proto"} {
				t.Run(name+" "+way+" "+accept, func(t *testing.T) {
					server := newFakeServer(t)
					network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: test.fault}}})
					u := newTestClient(t, through(network, &rest.Config{Host: server.URL}))
					got := u.watch(test.read, accept)
					if test.want == "cut" && got == "error" {
						got = "cut" // the watch was cut before its headers arrived
					}
					if got != test.want {
						t.Errorf("got %q, want %q", got, test.want)
					}
					if got := u.watch(3, accept); got != "e1 e2 e3" {
						t.Errorf("the next watch got %q", got)
					}
				})
			}
		}
	}
}

// TestFaultMovesToNextWatch checks that, if a watch ends before the fault is due, the fault is applied to the next
// watch.
func TestFaultMovesToNextWatch(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.DropWatch(2)}}})
	u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
	for _, want := range []string{"e1", "e1 e2 cut", "e1 e2 e3"} {
		if got := u.watch(len(strings.Fields(want)), "json"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// brokenBody is a transport that returns responses whose bodies cannot be read.
type brokenBody struct{ closed bool }

func (b *brokenBody) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: b}, nil
}

func (b *brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (b *brokenBody) Close() error             { b.closed = true; return nil }

// TestBrokenResponse checks that a transport returns either a response or an error, never both, and closes the body if
// it returns an error.
func TestBrokenResponse(t *testing.T) {
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Stale(1), Optional: true}}})
	body := &brokenBody{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+objectPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := network.Transport(body).RoundTrip(req) //nolint:bodyclose // there must be none
	if res != nil || !errors.Is(err, io.ErrUnexpectedEOF) || !body.closed {
		t.Errorf("answer %v, error %v, body closed: %t", res, err, body.closed)
	}
}

// TestDelayWatchEventsHitsAtOnce checks that DelayWatchEvents counts as a hit even if the watch ends during the delay.
func TestDelayWatchEventsHitsAtOnce(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.DelayWatchEvents(0, faultnet.LongestDelay)}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := rest.HTTPClientFor(network.Wrap(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+watchPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	ended := make(chan error, 1)
	go func() { _, err := res.Body.Read(make([]byte, 1)); ended <- err }()
	stalls := func(context.Context) (bool, error) { return network.Report().SumHits() == 1, nil }
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, faultnet.LongestDelay/2, true, stalls); err != nil {
		t.Error("no hit while the watch is held back")
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("an event came through")
	}
}

// TestRejectedRequestIsNotLost checks that DropResponse misses a request that the API server rejects, and that NewFault
// sends the request if the Injector returns neither a response nor an error.
func TestRejectedRequestIsNotLost(t *testing.T) {
	server := newFakeServer(t)
	silent := faultnet.NewFault("silent", faultnet.OnlyFirst(1, func(*http.Request) (*http.Response, error) { return nil, nil }))
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
		{Fault: faultnet.DropResponse()}, {Fault: silent, Optional: true},
	}})
	u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
	got := []string{u.send("PATCH", objectPath, "invalid"), u.send("PATCH", objectPath, "fine"), u.send("PATCH", objectPath)}
	if diff := cmp.Diff([]string{"422", "error", "200 v2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if hits := network.Report().SumHits(); hits != 1 {
		t.Errorf("%d hits", hits)
	}
}

// TestDisable checks that a disarmed network sends all requests and counts none of them, and that a killed network
// remains cut after Disable and Enable.
func TestDisable(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Conflict(), Times: faultnet.Always}}})
	u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
	network.Disable()
	if got := u.send("PATCH", objectPath); got != "200 v1" {
		t.Errorf("disarmed: %s", got)
	}
	network.Enable()
	for range 3 {
		if got := u.send("PATCH", objectPath); !strings.HasPrefix(got, "409") {
			t.Errorf("armed: %s", got)
		}
	}
	network.Disable()
	network.Kill()
	network.Kill()
	<-network.Killed()
	if got := u.send("GET", "/version"); got != "error" {
		t.Errorf("killed: %s", got)
	}
	report := network.Report()
	want := []faultnet.RuleReport{{Number: 1, Name: "409 Conflict", Matched: 3, Hits: 3}}
	if diff := cmp.Diff(want, report.Rules); diff != "" || len(report.Injected) != 3 {
		t.Errorf("%d injected, -want +got:\n%s", len(report.Injected), diff)
	}
}

// TestEncodeKubeconfig checks that a program can use the proxy with the kubeconfig.
func TestEncodeKubeconfig(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Conflict()}}})
	raw, err := faultnet.EncodeKubeconfig(network.Proxy(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := newTestClient(t, cfg).send("PATCH", objectPath); !strings.HasPrefix(got, "409") {
		t.Errorf("PATCH = %q, want the status 409", got)
	}
}
