// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"maps"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/internal/apirequest"
)

// Request describes a request to an API server: the verb, the resource and, if there is one, the object.
type Request struct {
	// Verb is get, list, create, update, patch, delete or deletecollection.
	Verb string
	// Resource and Subresource are spelled as in the URL, for example "deployitems" and "status".
	Resource, Subresource string
	// Namespace and Name identify the object. Name is empty for list, create and deletecollection.
	Namespace, Name string
}

// isRead reports whether the request is a get or a list.
func (r Request) isRead() bool { return r.Verb == "get" || r.Verb == "list" }

// Injector can respond to a request instead of the API server. It returns a response or an error. If it returns
// neither, the request is sent to the API server. An Injector may block until the context of the request is done.
type Injector func(*http.Request) (*http.Response, error)

// Counter counts requests by verb, resource, subresource and object. It can also make these requests fail. It ignores
// watches, discovery, and requests about events and leases. The zero value is ready to use. A Counter is safe for
// concurrent use.
type Counter struct {
	mu     sync.Mutex
	counts Counts
	inject Injector
}

// Wrap returns a copy of cfg. The requests of clients with this copy go through the counter.
func (c *Counter) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(c.Transport)
	return wrapped
}

// Transport returns a transport that counts the requests and sends them through `next`. Use it for clients that are not
// created from a config.
func (c *Counter) Transport(next http.RoundTripper) http.RoundTripper {
	return &countingTripper{counter: c, next: next}
}

// SetInjector sets the Injector for later requests. If f is nil, all requests are sent to the API server.
func (c *Counter) SetInjector(f Injector) {
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

// record counts a request and returns the current injector, or nil.
func (c *Counter) record(r Request) Injector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = Counts{}
	}
	c.counts[r]++
	return c.inject
}

// countingTripper is the transport that Counter.Transport returns.
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
	if inject := t.counter.record(r); inject != nil {
		if res, err := inject(req); res != nil || err != nil {
			return res, err
		}
	}
	return t.next.RoundTrip(req)
}

// RequestOf returns the description of a request to an API server. The second result is false for watches, discovery,
// requests about events and leases, and requests that do not concern the API.
func RequestOf(req *http.Request) (Request, bool) { return requestOf(req) }

func requestOf(req *http.Request) (Request, bool) {
	r, ok := apirequest.Parse(req.Method, req.URL)
	counted := ok && r.Verb != "watch" && r.Resource != "events" && r.Resource != "leases"
	return Request{Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}, counted
}
