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
}

// Counter counts requests. It is safe for concurrent use.
type Counter struct {
	mu    sync.Mutex
	kinds []Count
	total int
}

type contextKey struct{}

// With returns a context and a Counter. The Counter counts the requests that are sent with this context through a
// wrapper that [Transport] created.
func With(ctx context.Context) (context.Context, *Counter) {
	c := &Counter{}
	return context.WithValue(ctx, contextKey{}, c), c
}

// Counts returns the numbers of requests, sorted by cluster, resource and verb. It returns nil for a nil Counter.
func (c *Counter) Counts() []Count {
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

// Total returns the number of all requests. It returns 0 for a nil Counter.
func (c *Counter) Total() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

func (c *Counter) add(cluster, verb, resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	for i := range c.kinds {
		if k := &c.kinds[i]; k.Cluster == cluster && k.Verb == verb && k.Resource == resource {
			k.N++
			return
		}
	}
	if len(c.kinds) >= maxKinds {
		for i := range c.kinds {
			if k := &c.kinds[i]; k.Resource == other {
				k.N++
				return
			}
		}
		cluster, verb, resource = other, other, other
	}
	c.kinds = append(c.kinds, Count{Cluster: cluster, Verb: verb, Resource: resource, N: 1})
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
	if c, ok := req.Context().Value(contextKey{}).(*Counter); ok {
		verb, resource := kindOf(req)
		c.add(t.cluster, verb, resource)
	}
	return t.next.RoundTrip(req)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// kindOf returns the verb and the resource of a request to an API server, such as "get" and "deployments.apps".
func kindOf(req *http.Request) (verb, resource string) {
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
