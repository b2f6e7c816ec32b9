// SPDX-License-Identifier: Apache-2.0

// Package calls counts the requests that are sent to API servers on behalf of one context.
package calls

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// The clusters that are counted separately.
const (
	Landscaper = "landscaper"
	Target     = "target"
)

// maxKinds is how many kinds of requests are counted apart; the rest counts as "other".
const maxKinds = 12

const other = "other"

// Count is how many requests of one kind were sent.
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

// With returns a context whose requests are counted.
func With(ctx context.Context) (context.Context, *Counter) {
	c := &Counter{}
	return context.WithValue(ctx, contextKey{}, c), c
}

// Counts returns what was sent, sorted by cluster, resource and verb. A nil Counter has none.
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

// Total returns how many requests were sent. A nil Counter has none.
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

// Transport returns a round tripper that counts the requests of contexts of [With], as requests to a cluster.
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

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// kindOf returns verb and resource of a request to an API server, such as "get" and "deployments.apps".
func kindOf(req *http.Request) (verb, resource string) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return strings.ToLower(req.Method), "discovery"
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource = parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verbOf(req, len(parts) > 1), resource
}

func verbOf(req *http.Request, named bool) string {
	switch {
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") != "":
		return "watch"
	case req.Method == http.MethodGet && !named:
		return "list"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(req.Method)
}
