// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// endless is what a hostile server sends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func testAnswers(l Limits) *answers {
	l = l.withDefaults()
	return &answers{
		limits: &l, base: "/clusters/a", who: owner{"garden", "a"}, reading: newBudget("Reading", "read", l.Reading),
		decoding: newBudget("Decoding", "decoded", l.Decoding), hit: func(string) {},
	}
}

func testTurn() *turn { return (&health{}).begin(clock.RealClock{}) }

// TestEndlessAnswers: no server can fill the memory of the deployer with one answer, with or without a token.
func TestEndlessAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		method, url string
		option      string
	}{
		"groups [F2]":                   {http.MethodGet, "/apis", "Discovery"},
		"groups below a path [F2]":      {http.MethodGet, "/clusters/a/api", "Discovery"},
		"the kinds of a group [F2]":     {http.MethodGet, "/clusters/a/apis/apps/v1", "Discovery"},
		"the core kinds [F2]":           {http.MethodGet, "/api/v1", "Discovery"},
		"OpenAPI [F2]":                  {http.MethodGet, "/clusters/a/openapi/v3/apis/apps/v1", "Discovery"},
		"a list [F2]":                   {http.MethodGet, "/api/v1/configmaps", "Page"},
		"a list below a path [F2]":      {http.MethodGet, "/clusters/a/apis/apps/v1/namespaces/a/deployments", "Page"},
		"a list of namespaces [F2]":     {http.MethodGet, "/api/v1/namespaces", "Page"},
		"a namespace [F2]":              {http.MethodGet, "/api/v1/namespaces/a", "Object"},
		"a deletion of a list [F2]":     {http.MethodDelete, "/api/v1/namespaces/a/configmaps", "Page"},
		"an object [F2]":                {http.MethodGet, "/api/v1/namespaces/a/configmaps/b", "Object"},
		"an object of the cluster [F2]": {http.MethodGet, "/apis/example.org/v1/things/b", "Object"},
		"a subresource [F2]":            {http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/b/scale", "Object"},
		"a creation [F2]":               {http.MethodPost, "/api/v1/namespaces/a/configmaps", "Object"},
		"a patch [F2]":                  {http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", "Object"},
	} {
		t.Run(name, func(t *testing.T) {
			a := testAnswers(Limits{})
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{}, ContentLength: -1}
			err := a.read(t.Context(), func(error) {}, httptest.NewRequest(tc.method, tc.url, http.NoBody), resp, "", testTurn())
			if over, ok := errors.AsType[*LimitError](err); !ok || over.Option != tc.option || !strings.Contains(err.Error(), "targets.Limits."+tc.option) {
				t.Errorf("error %v, want one that names the option %s", err, tc.option)
			}
			if used, _ := a.reading.state(); used != 0 {
				t.Errorf("%d bytes are still in use", used)
			}
		})
	}
	t.Run("the text of an error is cut [F2]", func(t *testing.T) {
		resp := &http.Response{StatusCode: http.StatusConflict, Header: http.Header{}, Body: endless{}, ContentLength: -1}
		if err := testAnswers(Limits{}).read(t.Context(), func(error) {}, httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/a", http.NoBody), resp, "", testTurn()); err != nil {
			t.Fatal(err)
		}
		if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != maxErrorBody {
			t.Errorf("read %d bytes, %v", got, err)
		}
	})
}

// TestDecodingIsHeld: an answer counts until the call has ended, not only until its body was read.
func TestDecodingIsHeld(t *testing.T) {
	text := `{"kind":"ConfigMap","items":[` + strings.Repeat(`{"a":{}},`, 5000) + `{}]}`
	read := func(ctx context.Context, a *answers) *http.Response {
		t.Helper()
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1}
		req := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a/configmaps/b", http.NoBody).WithContext(ctx)
		if err := a.read(ctx, func(error) {}, req, resp, "", testTurn()); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != text {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	t.Run("with Hold, until release [F2]", func(t *testing.T) {
		a := testAnswers(Limits{})
		ctx, release := Hold(t.Context())
		read(ctx, a)
		if used, _ := a.decoding.state(); used < int64(3*len(text)) {
			t.Errorf("%d bytes in use for %d bytes of text that may still be decoded", used, len(text))
		}
		release()
		if used, _ := a.decoding.state(); used != 0 {
			t.Errorf("%d bytes in use after the end", used)
		}
	})
	t.Run("without Hold, for a while [F2]", func(t *testing.T) {
		a := testAnswers(Limits{})
		read(t.Context(), a)
		eventually(t, func() bool { used, _ := a.decoding.state(); return used == 0 })
	})
	t.Run("the next one waits, and can give up [F2]", func(t *testing.T) {
		a := testAnswers(Limits{Decoding: 5 << 20})
		ctx, release := Hold(t.Context())
		read(ctx, a)
		waiting, cancel := context.WithCancel(t.Context())
		cancel()
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1}
		err := a.read(waiting, func(error) {}, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a", http.NoBody), resp, "", testTurn())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
		release()
		ctx, release = Hold(t.Context())
		defer release()
		read(ctx, a)
	})
	t.Run("what is too costly alone is refused [F2]", func(t *testing.T) {
		a := testAnswers(Limits{Decoding: 1 << 20})
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1}
		err := a.read(t.Context(), func(error) {}, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a", http.NoBody), resp, "", testTurn())
		if over, ok := errors.AsType[*LimitError](err); !ok || over.Option != "Decoding" {
			t.Errorf("error %v", err)
		}
	})
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); !is(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not in time")
		}
	}
}

// TestBudgetIsFair: who holds least goes first, by namespace and then by target.
func TestBudgetIsFair(t *testing.T) {
	b := newBudget("Reading", "read", 10)
	take := func(namespace, target string, amount int64) *claim {
		t.Helper()
		c, err := b.claim(t.Context(), owner{namespace, target}, amount)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := take("evil", "a", 5), take("evil", "b", 5)
	order := make(chan string, 4)
	ask := func(namespace, target string) {
		go func() {
			if c, err := b.claim(t.Context(), owner{namespace, target}, 5); err == nil {
				order <- namespace + "/" + target
				c.release()
			}
		}()
		eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.waiting) > 0 && b.waiting[len(b.waiting)-1].who == owner{namespace, target}
		})
	}
	ask("evil", "b")
	ask("evil", "c")
	ask("good", "d")
	first.release()
	t.Run("the namespace that holds nothing first [F2]", func(t *testing.T) {
		if got := <-order; got != "good/d" {
			t.Errorf("%s is first", got)
		}
	})
	t.Run("then the target that holds nothing [F2]", func(t *testing.T) {
		if got := <-order; got != "evil/c" {
			t.Errorf("%s is second", got)
		}
	})
	second.release()
	<-order
	eventually(t, func() bool { used, _ := b.state(); return used == 0 })
	if len(b.held) != 0 || len(b.spaces) != 0 {
		t.Errorf("left behind: %v %v", b.held, b.spaces)
	}
}

// TestScan: the estimate covers what decoding takes, and the kind of an event is found.
func TestScan(t *testing.T) {
	for text, kind := range map[string]string{
		`{"type":"ERROR","object":{"type":"ADDED"}}`:       "ERROR",
		`{"object":{"type":"ADDED"}, "type" : "ERROR"}`:    "ERROR",
		`{"type":"ADDED","object":{"type":"ERROR"}}`:       "ADDED",
		`{"a":"type","b":"ERROR","type":"DELETED"}`:        "DELETED",
		`{"\u0074ype":"ERROR"}`:                            "ERROR",
		`{"type":"\u0045RROR"}`:                            "?",
		`{"typeandmore":"ERROR"}`:                          "?",
		`{"x":"a \"type\":\"ERROR\" b","type":"MODIFIED"}`: "?",
	} {
		s, end := scan{}, false
		for i := range len(text) {
			if end {
				t.Errorf("%s ends early, at %d", text, i)
			}
			end = s.next(text[i])
		}
		if !end || s.kind != kind && kind != "?" {
			t.Errorf("%s: end %t, kind %q, want %q", text, end, s.kind, kind)
		}
	}
}

// TestPace: over a minute, no way to end a watch leads to more than 100 of them, and what works is not slowed down.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		life   time.Duration
		failed bool
		most   int
		least  int
	}{
		"ends at once, by the server [F6]":        {0, true, 10, 4},
		"ends after a second, by the server [F6]": {time.Second, true, 10, 4},
		"ends at once, by the client [F6]":        {0, false, 100, 60},
		"ends after 30 s [F6]":                    {30 * time.Second, true, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacer()
			start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			now, opened := start, 0
			for now.Sub(start) < time.Minute {
				now = now.Add(p.begin("w", now))
				if now.Sub(start) >= time.Minute {
					break
				}
				opened++
				began := now
				now = now.Add(tc.life)
				p.end("w", began, now, tc.failed)
				now = now.Add(time.Millisecond)
			}
			if opened > tc.most || opened < tc.least {
				t.Errorf("opened %d times in a minute, want %d to %d", opened, tc.least, tc.most)
			}
		})
	}
}
