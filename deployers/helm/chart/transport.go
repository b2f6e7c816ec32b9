// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
	"k8s.io/utils/clock"
)

const (
	// maxRedirects is the maximum number of redirects of a request.
	maxRedirects = 5
	// slowAfter is the time after which an unfinished request counts as slow, and maxSlow is the number of slow requests
	// from which on no further request is sent to the same host.
	slowAfter = 5 * time.Second
	maxSlow   = 3
)

// scope limits where a credential is sent: to a scheme and host, and to paths with a prefix.
type scope struct {
	scheme, host, path string
}

// newScope returns the scope of a URL and everything below it.
func newScope(u *url.URL) scope {
	return scope{scheme: u.Scheme, host: hostName(u.Host), path: strings.TrimSuffix(u.Path, "/")}
}

// covers reports whether a URL is in the scope.
func (s scope) covers(u *url.URL) bool {
	return u.Scheme == s.scheme && hostName(u.Host) == s.host && isBelow(u.Path, s.path)
}

// isBelow reports whether a path is equal to another path or below it. Paths with dots are below no path except the root.
func isBelow(path, prefix string) bool {
	if prefix == "" {
		return true
	}
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '/') && !strings.Contains(rest+"/", "/../")
}

// coversAll reports whether a request and all requests that were redirected to it are in the scope.
func (s scope) coversAll(req *http.Request) bool {
	for s.covers(req.URL) {
		if req.Response == nil || req.Response.Request == nil {
			return true
		}
		req = req.Response.Request
	}
	return false
}

// route sends requests with the settings of their hosts, and with credentials only in the scope of these.
type route struct {
	*fetcher

	scope  scope
	header string // the value of the header Authorization for requests in the scope, or empty
	ca     string // certificates in PEM format for the host of the scope, or empty
	// registry means that the caller sets the header Authorization. It is removed from redirected requests outside the
	// scope, and may otherwise be sent only to token servers in the domain of the host.
	registry bool
}

// client returns an HTTP client for the route.
func (t *route) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return newError("", "more than %d redirects", maxRedirects)
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			return newError("", "a %s request is redirected", req.Method)
		}
		return nil
	}}
}

// RoundTrip sends a request.
func (t *route) RoundTrip(req *http.Request) (*http.Response, error) {
	host := t.hosts[hostName(req.URL.Host)]
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || !host.PlainHTTP) {
		return nil, newError("", "%s is accessed without TLS, which the operator did not allow for this host", hostName(req.URL.Host))
	}
	req = req.Clone(req.Context())
	if err := t.authorize(req); err != nil {
		return nil, err
	}
	key := transportKey{private: host.AllowPrivateAddress || t.options.AllowPrivateAddresses, insecure: host.InsecureSkipVerify, ca: string(host.CAData)}
	if hostName(req.URL.Host) == t.scope.host {
		key.ca += t.ca
	}
	done, err := t.gate.enter(hostName(req.URL.Host))
	if err != nil {
		return nil, err
	}
	resp, err := t.transportFor(key).RoundTrip(req)
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = &observedBody{ReadCloser: resp.Body, done: done, contextErr: req.Context().Err}
	if t.registry && req.Response != nil {
		resp.Header.Del("WWW-Authenticate") // a redirect must not select the server that receives the credential
	}
	return resp, nil
}

// authorize sets, keeps or removes the header Authorization of a request.
func (t *route) authorize(req *http.Request) error {
	switch secret := req.Header.Get("Authorization") != "" || req.Method == http.MethodPost; {
	case !t.registry:
		req.Header.Del("Authorization")
		if t.header != "" && t.scope.coversAll(req) {
			req.Header.Set("Authorization", t.header)
		}
	case !secret || t.scope.coversAll(req):
	case req.Response != nil:
		req.Header.Del("Authorization")
	case !t.isTokenServer(req.URL):
		return newError("", "the registry names a token server on the host %s, to which the credential is not sent because it is in another domain", hostName(req.URL.Host))
	}
	return nil
}

// isTokenServer reports whether a token server may receive the credential: it is on the host itself, or in its domain.
func (t *route) isTokenServer(u *url.URL) bool {
	registry := &url.URL{Host: t.scope.host}
	if u.Hostname() == registry.Hostname() {
		return u.Scheme == t.scope.scheme
	}
	own, err := publicsuffix.EffectiveTLDPlusOne(registry.Hostname())
	if err != nil {
		return false
	}
	other, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname())
	return err == nil && own == other && u.Scheme == "https"
}

// transportKey contains what distinguishes transports.
type transportKey struct {
	private, insecure bool
	ca                string
}

// transportFor returns the transport for a key. It uses HTTP/1.1, so that the number of connections limits the number of
// requests, and it does not use proxies, because they connect to addresses that the deployer refuses.
func (f *fetcher) transportFor(key transportKey) *http.Transport {
	f.transport.Lock()
	defer f.transport.Unlock()
	if t, ok := f.transports.Get(key); ok {
		return t.(*http.Transport)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: key.insecure} //nolint:gosec // only for hosts that the operator lists
	if key.ca != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM([]byte(key.ca))
		settings.RootCAs = pool
	}
	t := &http.Transport{
		DialContext: dial(key.private), TLSClientConfig: settings, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, MaxConnsPerHost: 8, MaxIdleConnsPerHost: 2, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second,
	}
	f.transports.Add(key, t)
	return t
}

// observedBody calls a function when it is closed. It cannot be read after the caller has given up: many servers notice
// this and end their answer, which may then reach the caller and look complete.
type observedBody struct {
	io.ReadCloser

	once       sync.Once
	done       func()
	contextErr func() error // returns the error of the request's context
}

// Read reads from the body.
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if gaveUp := b.contextErr(); gaveUp != nil {
		return 0, gaveUp
	}
	return n, err
}

// Close closes the body.
func (b *observedBody) Close() error {
	b.once.Do(b.done)
	return b.ReadCloser.Close()
}

// gate refuses requests to hosts that are slow, so that one host cannot occupy all workers.
type gate struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	pending map[string]map[*int]time.Time // start of the unfinished requests, by host
}

// enter registers a request. It returns an error if several other requests to the host are slow.
func (g *gate) enter(host string) (done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slow := 0
	for _, start := range g.pending[host] {
		if g.clock.Since(start) > slowAfter {
			slow++
		}
	}
	if slow >= maxSlow {
		return nil, errSlow
	}
	if g.pending[host] == nil {
		g.pending[host] = map[*int]time.Time{}
	}
	id := new(int)
	g.pending[host][id] = g.clock.Now()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.pending[host], id); len(g.pending[host]) == 0 {
			delete(g.pending, host)
		}
	}, nil
}
