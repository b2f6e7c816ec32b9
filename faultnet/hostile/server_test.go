// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
)

const secrets = "/api/v1/namespaces/default/secrets"

func start(t *testing.T, behaviours ...hostile.Behaviour) (*hostile.Server, func(method, path, body string) *http.Response) {
	t.Helper()
	s := hostile.New(behaviours...)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA())
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, func(method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer some-token")
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
}

func readBody(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestServer checks that a server without behaviours stores objects like an API server.
func TestServer(t *testing.T) {
	s, send := start(t)
	if resp := send(http.MethodGet, secrets+"/a", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("before it exists: %s", resp.Status)
	}
	if resp := send(http.MethodPatch, secrets+"/a", `{"kind":"Secret","metadata":{"name":"a","labels":{"x":"y"}}}`); resp.StatusCode != http.StatusCreated {
		t.Errorf("apply: %s", resp.Status)
	}
	if resp := send(http.MethodPost, secrets, `{"metadata":{"name":"a"}}`); resp.StatusCode != http.StatusConflict {
		t.Errorf("create again: %s", resp.Status)
	}
	watch := bufio.NewScanner(send(http.MethodGet, secrets+"?watch=true&sendInitialEvents=true", "").Body)
	next := func(kind, name string) {
		t.Helper()
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if !watch.Scan() || json.Unmarshal(watch.Bytes(), &event) != nil || event.Type != kind || event.Object.Metadata.Name != name {
			t.Errorf("event %s, want %s of %q", watch.Text(), kind, name)
		}
	}
	next("ADDED", "a")
	next("BOOKMARK", "")
	send(http.MethodPatch, secrets+"/a", `{"data":{"k":"dg=="}}`)
	next("MODIFIED", "a")
	if got := readBody(t, send(http.MethodGet, "/api/v1/secrets?labelSelector=x%3Dy", "")); !strings.Contains(got, `"dg=="`) || !strings.Contains(got, `"x":"y"`) {
		t.Errorf("list: %s", got)
	}
	if got := readBody(t, send(http.MethodGet, secrets+"?labelSelector=x%3Dz", "")); strings.Contains(got, `"dg=="`) {
		t.Errorf("another label: %s", got)
	}
	send(http.MethodDelete, secrets+"/a", "")
	next("DELETED", "a")
	if n := s.CountRequests(func(r hostile.Request) bool { return r.Method == http.MethodPatch }); n != 2 || s.MaxConcurrentRequests() < 2 {
		t.Errorf("%d patches, %d at once", n, s.MaxConcurrentRequests())
	}
	if got := string(s.Kubeconfig("t")); !strings.Contains(got, s.URL) || !strings.Contains(got, `token: "t"`) {
		t.Errorf("kubeconfig %s", got)
	}
}

func TestBehaviours(t *testing.T) {
	for name, tc := range map[string]struct {
		behaviour hostile.Behaviour
		path      string
		good      func(*http.Response, string) bool
	}{
		"Huge":        {hostile.LargeObject(1 << 20), secrets + "/a", func(_ *http.Response, body string) bool { return len(body) > 1<<20 && json.Valid([]byte(body)) }},
		"a huge list": {hostile.LargeObject(1 << 10), secrets, func(_ *http.Response, body string) bool { return strings.Contains(body, "ConfigMapList") }},
		"Gzip":        {hostile.When(hostile.MatchAll, hostile.Gzip(), hostile.LargeObject(1<<20)), secrets + "/a", func(r *http.Response, body string) bool { return r.Uncompressed && len(body) > 1<<20 }},
		"Nodes": {hostile.ManyValues(1000), secrets + "/a", func(_ *http.Response, body string) bool {
			return strings.Count(body, "{") > 1000 && json.Valid([]byte(body))
		}},
		"Deep": {hostile.DeepObject(1000), secrets + "/a", func(_ *http.Response, body string) bool {
			return strings.Count(body, "[") == 1000 && json.Valid([]byte(body))
		}},
		"EndlessPages": {hostile.EndlessPages(3, 10), secrets + "?continue=7", func(_ *http.Response, body string) bool {
			return strings.Contains(body, `"continue":"8"`) && strings.Count(body, `"uid"`) == 3
		}},
		"Trickle": {hostile.SendSlowly(time.Microsecond), "/version", func(_ *http.Response, body string) bool { return json.Valid([]byte(body)) }},
		"Expired": {hostile.WatchExpired(), secrets + "?watch=1", func(r *http.Response, body string) bool {
			return r.StatusCode == 200 && strings.Contains(body, `"code":410`)
		}},
		"Ending": {hostile.EmptyWatch(), secrets + "?watch=1", func(r *http.Response, body string) bool { return r.StatusCode == 200 && body == "" }},
		"Groups": {hostile.AddGroups(50, false), "/apis", func(_ *http.Response, body string) bool {
			return strings.Count(body, "groupVersion") == 50 && json.Valid([]byte(body))
		}},
		"aggregated": {hostile.AddGroups(50, true), "/apis", func(_ *http.Response, body string) bool {
			return strings.Count(body, "freshness") == 50 && json.Valid([]byte(body))
		}},
		"Redirect":    {hostile.Redirect("https://example.com"), "/version", func(r *http.Response, _ string) bool { return r.Header.Get("Location") == "https://example.com" }},
		"ContentType": {hostile.ContentType("text/html"), "/version", func(r *http.Response, _ string) bool { return r.Header.Get("Content-Type") == "text/html" }},
		"When":        {hostile.When(hostile.IsWatch, hostile.NoResponse()), "/version", func(_ *http.Response, body string) bool { return strings.Contains(body, "gitVersion") }},
	} {
		t.Run(name, func(t *testing.T) {
			_, send := start(t, tc.behaviour)
			resp := send(http.MethodGet, tc.path, "")
			if body := readBody(t, resp); !tc.good(resp, body) {
				t.Errorf("%s: %.300s", resp.Status, body)
			}
		})
	}
}

// TestEcho checks that Echo uses the given function to quote the strings in a request.
func TestEcho(t *testing.T) {
	if n := len(hostile.QuoteFuncs()); n < 20 {
		t.Errorf("%d quotings, want 20", n)
	}
	for name, quote := range hostile.QuoteFuncs() {
		_, send := start(t, hostile.When(hostile.IsWrite, hostile.Echo(http.StatusForbidden, quote)))
		resp := send(http.MethodPost, secrets, `{"stringData":{"a":"p&<\"'w"},"data":{"b":"czNjcjN0Cg=="}}`)
		var status struct{ Message string }
		if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s, %v", name, resp.Status, err)
		}
		for _, want := range []string{"some-token", "p&<\"'w", "s3cr3t\n"} {
			if !strings.Contains(status.Message, quote(want)) {
				t.Errorf("%s: %q is not in %q", name, quote(want), status.Message)
			}
		}
	}
}

// TestEchoInLaterError checks that an error about a ConfigMap quotes the values of a Secret with the same name, but not
// those of a Secret with another name.
func TestEchoInLaterError(t *testing.T) {
	configMaps := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/configmaps/") }
	_, send := start(t, hostile.EchoLater(configMaps, http.StatusForbidden, strings.ToUpper))
	for _, name := range []string{"a", "b"} {
		if resp := send(http.MethodPatch, secrets+"/"+name, `{"data":{"k":"czNjcjN0Cg=="},"stringData":{"k":"of `+name+`"}}`); resp.StatusCode != http.StatusCreated {
			t.Errorf("a request that does not match: %s", resp.Status)
		}
	}
	resp := send(http.MethodPatch, strings.Replace(secrets, "secrets", "configmaps", 1)+"/a", `{}`)
	got := readBody(t, resp)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(got, `S3CR3T`) || !strings.Contains(got, "OF A") || strings.Contains(got, "OF B") {
		t.Errorf("%s: %s", resp.Status, got)
	}
}

func TestForeignUIDs(t *testing.T) {
	_, send := start(t, hostile.ReplaceUIDs("another"))
	send(http.MethodPatch, secrets+"/a", `{"metadata":{"name":"a"}}`)
	for _, path := range []string{secrets + "/a", secrets} {
		if got := readBody(t, send(http.MethodGet, path, "")); !strings.Contains(got, `"uid":"another"`) || strings.Contains(got, "00000000-0000") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestEndlessResponseStops checks that an endless response ends when the client disconnects or the server is closed.
func TestEndlessResponseStops(t *testing.T) {
	for name, behaviour := range map[string]hostile.Behaviour{
		"Silent": hostile.NoResponse(), "Trickle": hostile.SendSlowly(time.Hour), "Flood": hostile.WatchEndlessly(),
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t, behaviour)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(s.CA())
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+secrets+"?watch=1", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if ctx.Err() == nil {
				t.Errorf("it ended by itself: %v", err)
			}
			s.Close()
		})
	}
}
