// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// cookieName is the name of the cookie that contains the token of the page.
const cookieName = "deployerkit-ui"

// policy is the Content-Security-Policy of all responses. Scripts, styles and data only come from the server itself,
// and scripts cannot convert texts to HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// access decides who may use the page.
type access struct {
	// loopback is true if the server listens on a loopback address.
	loopback bool
	// hosts lists the names under which browsers may open the page, besides localhost and IP addresses.
	hosts []string
	// token must accompany each request. If it is empty, no token is needed.
	token string
}

// wrap returns a handler that checks access and sets the headers that protect the page.
func (a access) wrap(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !a.allowsHost(req.Host):
			http.Error(w, "The address of the page contains a host name that the server does not know. Use localhost, an IP address, or start deployerkit ui with --host-name.", http.StatusMisdirectedRequest)
		case req.Header.Get("Sec-Fetch-Site") == "cross-site" && req.URL.Path != "/", origin.Check(req) != nil:
			http.Error(w, "The request comes from another site.", http.StatusForbidden)
		case a.token != "" && req.URL.Path == "/" && a.isToken(req.URL.Query().Get("token")):
			a.setCookie(w, req)
		case a.token != "" && !a.hasToken(req):
			http.Error(w, "Open the address with the token that deployerkit ui has printed.", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, req)
		}
	})
}

// allowsHost reports whether the Host header of a request is acceptable. A website that makes its own name resolve to the
// address of the page (DNS rebinding) is rejected, because its requests contain its name.
func (a access) allowsHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || !a.loopback
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(a.hosts, func(name string) bool { return strings.EqualFold(host, name) })
}

func (a access) isToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

// hasToken reports whether a request contains the token, in a cookie or as a bearer token.
func (a access) hasToken(req *http.Request) bool {
	if bearer, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); found {
		return a.isToken(bearer)
	}
	cookie, err := req.Cookie(cookieName)
	return err == nil && a.isToken(cookie.Value)
}

// setCookie moves the token from the address to a cookie, so that the address can be shared without the token.
func (a access) setCookie(w http.ResponseWriter, req *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: a.token, Path: "/", HttpOnly: true, Secure: req.TLS != nil, SameSite: http.SameSiteStrictMode})
	query := req.URL.Query()
	query.Del("token")
	http.Redirect(w, req, "/?"+query.Encode(), http.StatusSeeOther)
}
