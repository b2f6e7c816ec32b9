// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// none is a round tripper that returns empty responses.
type none struct{}

func (none) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: http.NoBody}, nil
}

func TestTransport(t *testing.T) {
	t.Run("the transport counts requests by cluster, verb and resource [E4]", func(t *testing.T) {
		ctx, c := With(t.Context())
		target := Transport(Target)(none{})
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
			{Target, "delete", "clusterroles.rbac.authorization.k8s.io", 1},
			{Target, "deletecollection", "configmaps", 1},
			{Target, "get", "configmaps", 2},
			{Target, "list", "configmaps", 1},
			{Target, "create", "deployments.apps", 1},
			{Target, "patch", "deployments.apps", 1},
			{Target, "update", "deployments.apps/status", 1},
			{Target, "get", "discovery", 2},
			{Target, "get", "namespaces", 1},
			{Target, "list", "nodes", 1},
			{Target, "watch", "nodes", 1},
		}
		if diff := cmp.Diff(want, c.Counts()); diff != "" || c.Total() != 13 {
			t.Errorf("%d: -want, +got:\n%s", c.Total(), diff)
		}
	})
	t.Run("the transport counts only a limited number of resources separately [E4]", func(t *testing.T) {
		ctx, c := With(t.Context())
		for i := range 100 {
			_, _ = Transport(Target)(none{}).RoundTrip(httptest.NewRequestWithContext(ctx, "GET", fmt.Sprintf("/api/v1/kind%d", i), nil)) //nolint:bodyclose // there is none
		}
		counts := c.Counts()
		sum := 0
		for _, k := range counts {
			sum += k.N
		}
		if len(counts) != maxKinds+1 || sum != 100 || c.Total() != 100 {
			t.Errorf("%d kinds, %d requests, total %d", len(counts), sum, c.Total())
		}
	})
	t.Run("a context without a counter has no counts", func(t *testing.T) {
		var c *Counter
		if c.Counts() != nil || c.Total() != 0 {
			t.Error("a nil counter has counts")
		}
	})
}
