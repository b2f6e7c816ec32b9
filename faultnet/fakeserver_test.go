// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

var errBoom = errors.New("boom")

// These constants are the URL paths for the object of the stand-in, the list of its objects, and a watch.
const (
	listPath   = "/api/v1/namespaces/ns/configmaps"
	objectPath = listPath + "/a"
	watchPath  = listPath + "?watch=true"
)

// fakeServer is a fake API server with one object. The content of the object is a version number, which every write
// increments.
type fakeServer struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	lists   int
	watches int
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.URL.Query().Get("watch") != "":
		s.watch(w, req)
	case req.Method != http.MethodGet:
		s.write(w, req)
	default:
		s.read(w, req)
	}
}

func (s *fakeServer) read(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.URL.Path == listPath:
		s.lists++
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":["v%d"]}`, s.lists, s.version)
	case s.version == 0:
		w.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprintf(w, "v%d", s.version)
	}
}

// write increments the version, unless the body is "invalid".
func (s *fakeServer) write(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil || string(body) == "invalid" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	s.version++
	fmt.Fprintf(w, "v%d", s.version)
}

// watch sends three events and then keeps the connection open. If the Accept header is "proto", it sends each event in
// a frame with a length.
func (s *fakeServer) watch(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.watches++
	s.mu.Unlock()
	framed := req.Header.Get("Accept") == "proto"
	if framed {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	}
	for i := range 3 {
		event := fmt.Sprintf("e%d\n", i+1)
		if framed {
			event = string(binary.BigEndian.AppendUint32(nil, uint32(len(event)))) + event //nolint:gosec // short
		}
		fmt.Fprint(w, event)
	}
	_ = http.NewResponseController(w).Flush()
	<-req.Context().Done()
}

func (s *fakeServer) countObjects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// ways contains the functions that connect a client with an API server through a network.
var ways = map[string]func(*faultnet.Network, *rest.Config) *rest.Config{
	"in the process": (*faultnet.Network).Wrap,
	"as a proxy":     (*faultnet.Network).Proxy,
}

// testClient sends requests to a stand-in through a network.
type testClient struct {
	t      *testing.T
	client *http.Client
	host   string
}

func newTestClient(t *testing.T, cfg *rest.Config) *testClient {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &testClient{t: t, client: c, host: cfg.Host}
}

// send sends a request. It returns the status and the body, such as "200 v1", or "error" if there is no response.
func (u *testClient) send(method, path string, body ...string) string {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), method, u.host+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		u.t.Fatal(err)
	}
	res, err := u.client.Do(req)
	if err != nil {
		return "error"
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return "error"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", res.StatusCode, text))
}

// watch opens a watch and reads n events. It returns the events. If the watch ends before the nth event, "cut" follows
// the events. If there is no response, watch returns "error".
func (u *testClient) watch(n int, accept string) string {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodGet, u.host+watchPath, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := u.client.Do(req)
	if err != nil {
		return "error"
	}
	defer func() { _ = res.Body.Close() }()
	size := len("e1\n")
	if accept == "proto" {
		size += 4
	}
	var got []string
	for range n {
		event := make([]byte, size)
		if _, err := io.ReadFull(res.Body, event); err != nil {
			return strings.Join(append(got, "cut"), " ")
		}
		got = append(got, strings.TrimSpace(string(event[size-3:])))
	}
	return strings.Join(got, " ")
}

// fakeTB is a testing.TB that records failures.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	errors   []string
	logs     []string
}

func (w *fakeTB) Helper()          {}
func (w *fakeTB) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }
func (w *fakeTB) Log(args ...any)  { w.appendLine(&w.logs, fmt.Sprintln(args...)) }
func (w *fakeTB) Logf(format string, args ...any) {
	w.appendLine(&w.logs, fmt.Sprintf(format, args...))
}

func (w *fakeTB) Errorf(format string, args ...any) {
	w.appendLine(&w.errors, fmt.Sprintf(format, args...))
}

func (w *fakeTB) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	panic(w)
}

func (w *fakeTB) appendLine(to *[]string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*to = append(*to, text)
}

// runCleanups runs the cleanup functions, as at the end of a test.
func (w *fakeTB) runCleanups() {
	for len(w.cleanups) > 0 {
		last := len(w.cleanups) - 1
		f := w.cleanups[last]
		w.cleanups = w.cleanups[:last]
		f()
	}
}
