// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// openWatch opens a watch with the given part of a query.
func openWatch(t *testing.T, transport *Transport, query string) *http.Response {
	t.Helper()
	resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://target/api/v1/configmaps?watch=true"+query, http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestStreamDeliversEventsAtOnce reads a watch line by line. Each event must arrive with a line break before the server
// sends the next event.
func TestStreamDeliversEventsAtOnce(t *testing.T) {
	body, server := io.Pipe()
	defer func() { _ = server.Close() }()
	lines := bufio.NewReader(openWatch(t, newTransport(newLimits(), http.StatusOK, body), "&resourceVersion=1").Body)
	for _, sent := range []string{`{"type":"ADDED","object":{"a":"}"}}`, "\n" + `{"type":"MODIFIED","object":{}}`} {
		go func() { _, _ = io.WriteString(server, sent) }()
		got := make(chan string, 1)
		go func() {
			line, _ := lines.ReadString('\n')
			got <- line
		}()
		select {
		case line := <-got:
			if want := strings.TrimSpace(sent) + "\n"; line != want {
				t.Errorf("got %q, want %q", line, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%q did not arrive", sent)
		}
	}
}

// TestStreamLimits checks that the error for each limit names the option and the flag that raise the limit.
func TestStreamLimits(t *testing.T) {
	const added, modified = `{"type":"ADDED","object":{}}`, `{"type":"MODIFIED","object":{"k":"vvvv"}}`
	for name, tc := range map[string]struct {
		change func(*Limits)
		query  string
		event  string
		want   string
	}{
		"WatchObjects limits the initial objects [F3]":           {func(l *Limits) { l.WatchObjects, l.WatchEvents = 20, 1 }, "", added, "WatchObjects"},
		"List limits the bytes of the initial objects [F3]":      {func(l *Limits) { l.List, l.WatchBytes, l.Object = 500, 10, 100 }, "&sendInitialEvents=true&resourceVersion=7", added, "List"},
		"WatchEvents limits the events [F3]":                     {func(l *Limits) { l.WatchEvents = 1 }, "&resourceVersion=7", added, "WatchEvents"},
		"WatchEvents limits the events after the objects [F3]":   {func(l *Limits) { l.WatchObjects, l.WatchEvents = 20, 1 }, "", modified, "WatchEvents"},
		"WatchBytes limits the bytes [F3]":                       {func(l *Limits) { l.WatchBytes, l.Object = 10, 100 }, "&resourceVersion=7", added, "WatchBytes"},
		"WatchBytes limits the bytes after the objects [F3]":     {func(l *Limits) { l.List, l.WatchBytes, l.Object = 500, 10, 100 }, "", modified, "WatchBytes"},
		"Object limits the size of one event [F3]":               {func(l *Limits) { l.Object = 10 }, "", added, "Object"},
		"Decoding limits the memory for decoding one event [F3]": {func(l *Limits) { l.Decoding = 10 }, "", added, "Decoding"},
	} {
		t.Run(name, func(t *testing.T) {
			l, observer := newLimits(), &fakeObserver{}
			tc.change(&l)
			transport := newTransport(l, http.StatusOK, strings.NewReader(strings.Repeat(tc.event, 1000)))
			transport.Clock, transport.Observer = clocktesting.NewFakePassiveClock(time.Now()), observer
			_, err := io.Copy(io.Discard, openWatch(t, transport, tc.query).Body)
			expectOption(t, err, tc.want)
			if !errors.Is(observer.ended, err) {
				t.Errorf("the observer got the error %v, want %v", observer.ended, err)
			}
		})
	}
}
