// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWatchedEvent reads a watch line by line. Each event must arrive with a line break before the server sends the
// next event.
func TestWatchedEvent(t *testing.T) {
	body, server := io.Pipe()
	defer func() { _ = server.Close() }()
	req := httptest.NewRequest(http.MethodGet, "https://target/api/v1/configmaps?watch=true&resourceVersion=1", http.NoBody)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	if err := testAnswers(Limits{}).watch(req, resp, clock.RealClock{}, func(bool, error) {}); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(resp.Body)
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

// TestLimitsOfWatches checks that the error for each limit names the option and the flag that raise the limit.
func TestLimitsOfWatches(t *testing.T) {
	const added, modified = `{"type":"ADDED","object":{}}`, `{"type":"MODIFIED","object":{"k":"vvvv"}}`
	for name, tc := range map[string]struct {
		limits Limits
		query  string
		event  string
		want   string
	}{
		"objects at the beginning [F3]": {Limits{WatchObjects: 20, WatchEvents: 1}, "", added, "WatchObjects"},
		"bytes at the beginning [F3]":   {Limits{List: 500, WatchBytes: 10, Object: 100}, "&sendInitialEvents=true&resourceVersion=7", added, "List"},
		"events [F3]":                   {Limits{WatchEvents: 1}, "&resourceVersion=7", added, "WatchEvents"},
		"events after the objects [F3]": {Limits{WatchObjects: 20, WatchEvents: 1}, "", modified, "WatchEvents"},
		"bytes [F3]":                    {Limits{WatchBytes: 10, Object: 100}, "&resourceVersion=7", added, "WatchBytes"},
		"bytes after the objects [F3]":  {Limits{List: 500, WatchBytes: 10, Object: 100}, "", modified, "WatchBytes"},
		"one event [F3]":                {Limits{Object: 10}, "", added, "Object"},
		"values of one event [F3]":      {Limits{Decoding: 10}, "", added, "Decoding"},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, "https://target/api/v1/configmaps?watch=true"+tc.query, http.NoBody)
			resp := &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(strings.Repeat(tc.event, 1000))),
			}
			var why error
			if err := testAnswers(tc.limits).watch(req, resp, clocktesting.NewFakePassiveClock(time.Now()), func(_ bool, err error) { why = err }); err != nil {
				t.Fatal(err)
			}
			_, err := io.Copy(io.Discard, resp.Body)
			over, ok := errors.AsType[*LimitError](err)
			if !ok || over.Option != tc.want || !strings.Contains(err.Error(), "targets.Limits."+tc.want+" or the flag "+FlagOf(tc.want)+" raises") {
				t.Errorf("error %v, want one that names %s", err, tc.want)
			}
			if !errors.Is(why, err) {
				t.Errorf("the target is judged by %v", why)
			}
		})
	}
}
