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

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

// endless is a response body without an end. A hostile server may send such a body.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func testAnswers(l Limits) *answers {
	l = l.withDefaults()
	return &answers{
		limits: &l, base: "/clusters/a", who: budget.Owner{Namespace: "garden", Target: "a"}, reading: budget.New("read", raisedBy("Reading"), l.Reading),
		decoding: budget.New("decoded", raisedBy("Decoding"), l.Decoding), hit: func(string) {},
	}
}

func testTurn() *turn { return (&health{}).begin(clock.RealClock{}) }

// TestEndlessAnswers checks that a single response cannot fill the memory of the deployer, whether the client uses a
// token or not.
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
			if used, _ := a.reading.State(); used != 0 {
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

// TestDecodingIsHeld checks that a response counts against the decoding budget until the call has ended, and not only
// until the body has been read.
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
		ctx, release := ReserveMemory(t.Context())
		read(ctx, a)
		if used, _ := a.decoding.State(); used < int64(3*len(text)) {
			t.Errorf("%d bytes in use for %d bytes of text that may still be decoded", used, len(text))
		}
		release()
		if used, _ := a.decoding.State(); used != 0 {
			t.Errorf("%d bytes in use after the end", used)
		}
	})
	t.Run("without Hold, for a while [F2]", func(t *testing.T) {
		a := testAnswers(Limits{})
		read(t.Context(), a)
		eventually(t, func() bool { used, _ := a.decoding.State(); return used == 0 })
	})
	t.Run("the next one waits, and can give up [F2]", func(t *testing.T) {
		a := testAnswers(Limits{Decoding: 5 << 20})
		ctx, release := ReserveMemory(t.Context())
		read(ctx, a)
		waiting, cancel := context.WithCancel(t.Context())
		cancel()
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1}
		err := a.read(waiting, func(error) {}, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a", http.NoBody), resp, "", testTurn())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
		release()
		ctx, release = ReserveMemory(t.Context())
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
