// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Request is one kind of request to an API server.
type Request struct {
	// Verb is get, list, create, update, patch, delete or deletecollection.
	Verb string
	// Resource and Subresource are as in the URL: "deployitems", "status".
	Resource, Subresource string
	// Namespace and Name say which object; no name: list, create and deletecollection.
	Namespace, Name string
}

// isRead reports whether the request changes nothing.
func (r Request) isRead() bool { return r.Verb == "get" || r.Verb == "list" }

// Injector may answer a request in the API server's place, or fail it. If
// both results are nil, the request is sent on. It may block until the request's context ends.
type Injector func(*http.Request) (*http.Response, error)

// Counter counts the requests that go through it, by verb, resource,
// subresource and object, and can make them fail. Events, leases, watches and
// discovery are not counted and not injected into. The zero value is ready; it is
// safe for concurrent use.
type Counter struct {
	mu     sync.Mutex
	counts Counts
	inject Injector
}

// Wrap returns a copy of cfg whose requests go through the counter.
func (c *Counter) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(c.Transport)
	return wrapped
}

// Transport returns a transport whose requests go through the counter, for clients that are not made of a config.
func (c *Counter) Transport(next http.RoundTripper) http.RoundTripper {
	return &countingTripper{counter: c, next: next}
}

// Inject sets what may answer requests from now on. If f is nil, all requests
// are sent on.
func (c *Counter) Inject(f Injector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inject = f
}

// Snapshot returns the counts so far. It is the caller's own.
func (c *Counter) Snapshot() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counts{}
	maps.Copy(out, c.counts)
	return out
}

// count notes a request and returns what may answer it.
func (c *Counter) count(r Request) Injector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = Counts{}
	}
	c.counts[r]++
	return c.inject
}

// countingTripper is the transport of a wrapped configuration.
type countingTripper struct {
	counter *Counter
	next    http.RoundTripper
}

// RoundTrip counts the request and passes it on.
func (t *countingTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	r, counted := requestOf(req)
	if !counted {
		return t.next.RoundTrip(req)
	}
	if inject := t.counter.count(r); inject != nil {
		if res, err := inject(req); res != nil || err != nil {
			return res, err
		}
	}
	return t.next.RoundTrip(req)
}

// RequestOf tells what a request to an API server is about. false: events,
// leases, watches, discovery and all that is no API request.
func RequestOf(req *http.Request) (Request, bool) { return requestOf(req) }

func requestOf(req *http.Request) (Request, bool) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return Request{}, false
	}
	r := Request{}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	r.Verb = verbOf(req, r.Name != "")
	counted := r.Verb != "watch" && r.Resource != "events" && r.Resource != "leases"
	return r, counted
}

// verbOf names what a request does.
func verbOf(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return "watch"
	}
	if named {
		return "get"
	}
	return "list"
}
