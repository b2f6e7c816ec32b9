// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestWatchedEvent reads a watch line by line: each event arrives with its line break, before the next one is there.
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
