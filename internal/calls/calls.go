// SPDX-License-Identifier: Apache-2.0

// Package calls counts the requests to API servers that are sent with a given context.
package calls

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/internal/apirequest"
)

// These constants are the names of clusters. Requests are counted separately for each cluster.
const (
	Landscaper = "landscaper"
	Target     = "target"
)

// maxKinds is the maximum number of combinations of cluster, verb and resource that a Counter counts separately.
// Requests with further combinations are counted as "other".
const maxKinds = 12

const other = "other"

// Count contains the number N of requests with the given cluster, verb and resource.
type Count struct {
	Cluster, Verb, Resource string
	N                       int
	// Began is when the first request was sent, and Ended is when the last response arrived. While there is no response,
	// Ended is equal to Began.
	Began, Ended time.Time
}

// Counter counts requests. It is safe for concurrent use.
type Counter struct {
	now func() time.Time

	mu    sync.Mutex
	kinds []Count
	total int
}

type contextKey struct{}

// With returns a context and a Counter. The Counter counts the requests that are sent with this context through a
// wrapper that [Transport] created. The function now returns the current time.
func With(ctx context.Context, now func() time.Time) (context.Context, *Counter) {
	c := &Counter{now: now}
	return context.WithValue(ctx, contextKey{}, c), c
}

// ListCounts returns the numbers of requests, sorted by cluster, resource and verb. It returns nil for a nil Counter.
func (c *Counter) ListCounts() []Count {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.kinds)
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

// Sum returns the number of all requests. It returns 0 for a nil Counter.
func (c *Counter) Sum() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// begin counts a request. It returns the index of its kind, for the method end.
func (c *Counter) begin(cluster, verb, resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	kind := c.find(cluster, verb, resource)
	if kind < 0 && len(c.kinds) >= maxKinds {
		cluster, verb, resource = other, other, other
		kind = c.find(cluster, verb, resource)
	}
	if kind < 0 {
		now := c.now()
		c.kinds = append(c.kinds, Count{Cluster: cluster, Verb: verb, Resource: resource, Began: now, Ended: now})
		kind = len(c.kinds) - 1
	}
	c.kinds[kind].N++
	return kind
}

// find returns the index of a kind, or -1. The caller holds mu.
func (c *Counter) find(cluster, verb, resource string) int {
	return slices.IndexFunc(c.kinds, func(k Count) bool { return k.Cluster == cluster && k.Verb == verb && k.Resource == resource })
}

// end records that the response to a request has arrived.
func (c *Counter) end(kind int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind].Ended = c.now()
}

// Transport returns a function that wraps a round tripper. If the context of a request was created by [With], the
// wrapper counts the request and assigns it to the given cluster.
func Transport(cluster string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &transport{cluster: cluster, next: next} }
}

type transport struct {
	cluster string
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(contextKey{}).(*Counter)
	if !ok {
		return t.next.RoundTrip(req)
	}
	verb, resource := parseRequest(req)
	kind := c.begin(t.cluster, verb, resource)
	defer c.end(kind)
	return t.next.RoundTrip(req)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// parseRequest returns the verb and the resource of a request to an API server, such as "get" and "deployments.apps".
func parseRequest(req *http.Request) (verb, resource string) {
	r, ok := apirequest.Parse(req.Method, req.URL)
	if !ok {
		return strings.ToLower(req.Method), "discovery"
	}
	resource = schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return r.Verb, resource
}
