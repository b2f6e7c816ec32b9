// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// serve returns the response of a handler that an access protects.
func serve(t *testing.T, a access, change func(*http.Request)) *http.Response {
	t.Helper()
	handler := a.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "content") }))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:7070/api/stream", nil)
	change(req)
	out := httptest.NewRecorder()
	handler.ServeHTTP(out, req)
	return out.Result()
}

func TestServerChecksHostHeader(t *testing.T) {
	for name, tc := range map[string]struct {
		access access
		host   string
		want   int
	}{
		"accepts the loopback address":                           {access{loopback: true}, "127.0.0.1:7070", http.StatusOK},
		"accepts the loopback address of IPv6":                   {access{loopback: true}, "[::1]:7070", http.StatusOK},
		"accepts localhost":                                      {access{loopback: true}, "LOCALHOST:7070", http.StatusOK},
		"accepts a name that the user has given":                 {access{loopback: true, hosts: []string{"page.example.org"}}, "Page.example.org", http.StatusOK},
		"accepts any IP address if the listener is not loopback": {access{}, "192.0.2.1:7070", http.StatusOK},
		"rejects a name that resolves to the server [U2]":        {access{loopback: true}, "attacker.example.org:7070", http.StatusMisdirectedRequest},
		"rejects a name that begins with localhost [U2]":         {access{loopback: true}, "localhost.example.org:7070", http.StatusMisdirectedRequest},
		"rejects another address on a loopback listener [U2]":    {access{loopback: true}, "192.0.2.1:7070", http.StatusMisdirectedRequest},
		"rejects an empty host [U2]":                             {access{loopback: true}, "", http.StatusMisdirectedRequest},
		"rejects an unknown name even with the token [U2]":       {access{token: "t"}, "attacker.example.org", http.StatusMisdirectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := serve(t, tc.access, func(req *http.Request) {
				req.Host = tc.host
				req.Header.Set("Authorization", "Bearer t")
			})
			if got.StatusCode != tc.want {
				t.Errorf("Host %q: got status %d, want %d", tc.host, got.StatusCode, tc.want)
			}
		})
	}
}

func TestServerRejectsOtherSites(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, site string
		want               int
	}{
		"reads by the page are accepted":              {http.MethodGet, "/api/stream", "same-origin", http.StatusOK},
		"links of other sites are accepted":           {http.MethodGet, "/", "cross-site", http.StatusOK},
		"reads by other sites are rejected [U2]":      {http.MethodGet, "/api/stream", "cross-site", http.StatusForbidden},
		"plans for other sites are rejected [U2]":     {http.MethodPost, "/", "cross-site", http.StatusForbidden},
		"plans for other subdomains are refused [U2]": {http.MethodPost, "/api/plan/a/b", "same-site", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			got := serve(t, access{loopback: true}, func(req *http.Request) {
				req.Method, req.URL.Path = tc.method, tc.path
				req.Header.Set("Sec-Fetch-Site", tc.site)
			})
			if got.StatusCode != tc.want {
				t.Errorf("got status %d, want %d", got.StatusCode, tc.want)
			}
		})
	}
}

func TestServerRequiresToken(t *testing.T) {
	a := access{token: "secret-token"}
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token is rejected [U1]":      {func(*http.Request) {}, http.StatusUnauthorized},
		"a wrong token is rejected [U1]": {func(req *http.Request) { req.Header.Set("Authorization", "Bearer other") }, http.StatusUnauthorized},
		"a wrong cookie is rejected [U1]": {func(req *http.Request) {
			req.AddCookie(&http.Cookie{Name: cookieName, Value: "secret-toke"})
		}, http.StatusUnauthorized},
		"the token in the address of data is rejected [U1]": {func(req *http.Request) { req.URL.RawQuery = "token=secret-token" }, http.StatusUnauthorized},
		"the bearer token is accepted":                      {func(req *http.Request) { req.Header.Set("Authorization", "Bearer secret-token") }, http.StatusOK},
		"the cookie is accepted": {func(req *http.Request) {
			req.AddCookie(&http.Cookie{Name: cookieName, Value: "secret-token"})
		}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := serve(t, a, tc.change); got.StatusCode != tc.want {
				t.Errorf("got status %d, want %d", got.StatusCode, tc.want)
			}
		})
	}
	t.Run("the token moves from the address to a cookie that scripts cannot read [U1]", func(t *testing.T) {
		got := serve(t, a, func(req *http.Request) { req.URL.Path, req.URL.RawQuery = "/", "text=x&token=secret-token" })
		if location := got.Header.Get("Location"); got.StatusCode != http.StatusSeeOther || location != "/?text=x" {
			t.Errorf("got status %d and location %q, want a redirect to /?text=x", got.StatusCode, location)
		}
		cookies := got.Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
			t.Errorf("got cookies %v, want one that is HttpOnly and SameSite=Strict", cookies)
		}
	})
}

func TestServerRequiresTokenForOtherAddresses(t *testing.T) {
	s, err := NewServer(Options{Config: &rest.Config{Host: "127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), listener); !errors.Is(err, ErrToken) {
		t.Errorf("without a token at %s [U1]: got %v, want ErrToken", listener.Addr(), err)
	}
}

func TestEveryResponseHasStrictPolicy(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"a response [U3]": func(*http.Request) {},
		"an error [U3]":   func(req *http.Request) { req.Host = "attacker.example.org" },
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, access{loopback: true}, change).Header
			csp := h.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
				if !strings.Contains(csp, want) {
					t.Errorf("the policy %q lacks %q", csp, want)
				}
			}
			if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
				t.Errorf("the policy %q is not strict", csp)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("headers are missing: %v", h)
			}
		})
	}
}

func TestFilesReferToNoOtherServer(t *testing.T) {
	handler := (&Server{store: newStore()}).newHandler()
	for _, path := range listFiles(t) {
		t.Run(path+" is served and refers to no other server [U3, U15]", func(t *testing.T) {
			out := httptest.NewRecorder()
			handler.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+strings.TrimSuffix(path, "index.html"), nil))
			body := out.Body.String()
			if out.Code != http.StatusOK {
				t.Errorf("got status %d, want 200", out.Code)
			}
			body = strings.ReplaceAll(body, "http://www.w3.org/2000/svg", "") // a namespace, which is never opened
			for _, unwanted := range []string{"http://", "https://", "innerHTML", "eval(", "new Function"} {
				if strings.Contains(body, unwanted) {
					t.Errorf("the file contains %q", unwanted)
				}
			}
		})
	}
}

func TestLibrariesHaveLicences(t *testing.T) {
	files := listFiles(t)
	for _, path := range files {
		name, isScript := strings.CutSuffix(path, ".js")
		if !isScript || !strings.HasPrefix(path, "vendor/") {
			continue
		}
		t.Run(path+" has a licence next to it [U15]", func(t *testing.T) {
			if !slices.Contains(files, name+".LICENSE") {
				t.Errorf("%s.LICENSE does not exist", name)
			}
		})
	}
}

// listFiles returns the paths of the files of the page, below the directory static.
func listFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := fs.WalkDir(static, "static", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, "static/"))
		}
		return err
	})
	if err != nil || len(paths) < 10 {
		t.Fatalf("the page consists of %d files: %v", len(paths), err)
	}
	return paths
}
