// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// emptyRoundTripper is a round tripper that returns empty responses.
type emptyRoundTripper struct{}

func (emptyRoundTripper) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: http.NoBody}, nil
}

func TestTransport(t *testing.T) {
	t.Run("the transport counts requests by cluster, verb and resource [V4]", func(t *testing.T) {
		now := time.Unix(0, 0)
		ctx, c := With(t.Context(), func() time.Time { now = now.Add(time.Second); return now })
		target := Transport(Target)(emptyRoundTripper{})
		for _, r := range []struct{ method, path string }{
			{"GET", "/api/v1/namespaces/shop/configmaps/a"},
			{"GET", "/api/v1/namespaces/shop/configmaps/b"},
			{"GET", "/api/v1/namespaces/shop/configmaps"},
			{"GET", "/api/v1/namespaces/shop"},
			{"GET", "/api/v1/nodes?watch=true"},
			{"GET", "/api/v1/nodes?watch=false"},
			{"DELETE", "/api/v1/namespaces/shop/configmaps"},
			{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/web"},
			{"PUT", "/apis/apps/v1/namespaces/shop/deployments/web/status"},
			{"POST", "/apis/apps/v1/namespaces/shop/deployments"},
			{"DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/x"},
			{"GET", "/apis"},
			{"GET", "/"},
		} {
			req := httptest.NewRequestWithContext(ctx, r.method, r.path, nil)
			if _, err := target.RoundTrip(req); err != nil { //nolint:bodyclose // there is none
				t.Fatal(err)
			}
		}
		_, _ = target.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/pods", nil)) //nolint:bodyclose // there is none
		want := []Count{
			{Cluster: Target, Verb: "delete", Resource: "clusterroles.rbac.authorization.k8s.io", N: 1},
			{Cluster: Target, Verb: "deletecollection", Resource: "configmaps", N: 1},
			{Cluster: Target, Verb: "get", Resource: "configmaps", N: 2},
			{Cluster: Target, Verb: "list", Resource: "configmaps", N: 1},
			{Cluster: Target, Verb: "create", Resource: "deployments.apps", N: 1},
			{Cluster: Target, Verb: "patch", Resource: "deployments.apps", N: 1},
			{Cluster: Target, Verb: "update", Resource: "deployments.apps/status", N: 1},
			{Cluster: Target, Verb: "get", Resource: "discovery", N: 2},
			{Cluster: Target, Verb: "get", Resource: "namespaces", N: 1},
			{Cluster: Target, Verb: "list", Resource: "nodes", N: 1},
			{Cluster: Target, Verb: "watch", Resource: "nodes", N: 1},
		}
		got := c.ListCounts()
		configmaps := got[2]
		for i := range got {
			got[i].Began, got[i].Ended = time.Time{}, time.Time{}
		}
		// The clock is read when the first request of a kind begins, and when each request ends.
		if configmaps.Began != time.Unix(1, 0) || configmaps.Ended != time.Unix(3, 0) {
			t.Errorf("the requests for single ConfigMaps began at %s and ended at %s", configmaps.Began, configmaps.Ended)
		}
		if diff := cmp.Diff(want, got); diff != "" || c.Sum() != 13 {
			t.Errorf("%d: -want, +got:\n%s", c.Sum(), diff)
		}
	})
	t.Run("the transport counts only a limited number of resources separately [V4]", func(t *testing.T) {
		ctx, c := With(t.Context(), time.Now)
		for i := range 100 {
			_, _ = Transport(Target)(emptyRoundTripper{}).RoundTrip(httptest.NewRequestWithContext(ctx, "GET", fmt.Sprintf("/api/v1/kind%d", i), nil)) //nolint:bodyclose // there is none
		}
		counts := c.ListCounts()
		sum := 0
		for _, k := range counts {
			sum += k.N
		}
		if len(counts) != maxKinds+1 || sum != 100 || c.Sum() != 100 {
			t.Errorf("%d kinds, %d requests, total %d", len(counts), sum, c.Sum())
		}
	})
	t.Run("a context without a counter has no counts", func(t *testing.T) {
		var c *Counter
		if c.ListCounts() != nil || c.Sum() != 0 {
			t.Error("a nil counter has counts")
		}
	})
}
