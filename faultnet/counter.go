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
	// Resource and Subresource are as in the URL, for example "deployitems" and "status".
	Resource, Subresource string
	// Namespace and Name identify the object. Name is empty for list, create and deletecollection.
	Namespace, Name string
}

// isRead reports whether the request changes nothing.
func (r Request) isRead() bool { return r.Verb == "get" || r.Verb == "list" }

// Injector may respond to a request instead of the API server, or fail it. If both results are nil, the request is
// sent. An Injector may block until the request's context is done.
type Injector func(*http.Request) (*http.Response, error)

// Counter counts the requests that pass it, by verb, resource, subresource and object, and can make them fail. It
// ignores events, leases, watches and discovery. The zero value is ready to use. It is safe for concurrent use.
type Counter struct {
	mu     sync.Mutex
	counts Counts
	inject Injector
}

// Wrap returns a copy of cfg whose requests pass the counter.
func (c *Counter) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(c.Transport)
	return wrapped
}

// Transport returns a transport whose requests pass the counter, for clients that are not created from a config.
func (c *Counter) Transport(next http.RoundTripper) http.RoundTripper {
	return &countingTripper{counter: c, next: next}
}

// Inject sets the injector for later requests. If f is nil, all requests are sent.
func (c *Counter) Inject(f Injector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inject = f
}

// Snapshot returns a copy of the counts so far.
func (c *Counter) Snapshot() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counts{}
	maps.Copy(out, c.counts)
	return out
}

// count records a request and returns the injector for it.
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

// RoundTrip counts the request and sends it.
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

// RequestOf returns the kind of a request to an API server. It returns false for events, leases, watches, discovery and
// requests that are not API requests.
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

// verbOf returns the verb of a request.
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
