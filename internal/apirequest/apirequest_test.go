// SPDX-License-Identifier: Apache-2.0

package apirequest

import (
	"net/url"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		method, url string
		want        Request
		ok          bool
	}{
		{"GET", "/api/v1/namespaces/shop/configmaps/a", Request{Verb: "get", Namespace: "shop", Resource: "configmaps", Name: "a"}, true},
		{"HEAD", "/api/v1/nodes/a", Request{Verb: "get", Resource: "nodes", Name: "a"}, true},
		{"GET", "/api/v1/namespaces/shop/configmaps", Request{Verb: "list", Namespace: "shop", Resource: "configmaps"}, true},
		{"GET", "/api/v1/configmaps?limit=5", Request{Verb: "list", Resource: "configmaps"}, true},
		{"GET", "/api/v1/namespaces", Request{Verb: "list", Resource: "namespaces"}, true},
		{"GET", "/api/v1/namespaces/shop", Request{Verb: "get", Resource: "namespaces", Name: "shop"}, true},
		{"PUT", "/api/v1/namespaces/shop/finalize", Request{Verb: "update", Resource: "namespaces", Name: "shop", Subresource: "finalize"}, true},
		{"PATCH", "/api/v1/namespaces/shop/status", Request{Verb: "patch", Resource: "namespaces", Name: "shop", Subresource: "status"}, true},
		{"GET", "/apis/apps/v1/deployments?watch=true", Request{Verb: "watch", Group: "apps", Resource: "deployments"}, true},
		{"GET", "/apis/apps/v1/deployments?watch=1", Request{Verb: "watch", Group: "apps", Resource: "deployments"}, true},
		{"GET", "/apis/apps/v1/deployments?watch", Request{Verb: "watch", Group: "apps", Resource: "deployments"}, true},
		{"GET", "/apis/apps/v1/deployments?watch=false", Request{Verb: "list", Group: "apps", Resource: "deployments"}, true},
		{"GET", "/apis/apps/v1/deployments?watch=0", Request{Verb: "list", Group: "apps", Resource: "deployments"}, true},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments/web?watch=true", Request{Verb: "get", Group: "apps", Namespace: "shop", Resource: "deployments", Name: "web"}, true},
		{"POST", "/apis/apps/v1/namespaces/shop/deployments", Request{Verb: "create", Group: "apps", Namespace: "shop", Resource: "deployments"}, true},
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", Request{Verb: "patch", Group: "apps", Namespace: "shop", Resource: "deployments", Name: "web"}, true},
		{"PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale", Request{Verb: "update", Group: "apps", Namespace: "shop", Resource: "deployments", Name: "web", Subresource: "scale"}, true},
		{"DELETE", "/apis/apps/v1/namespaces/shop/deployments/web", Request{Verb: "delete", Group: "apps", Namespace: "shop", Resource: "deployments", Name: "web"}, true},
		{"DELETE", "/apis/apps/v1/namespaces/shop/deployments", Request{Verb: "deletecollection", Group: "apps", Namespace: "shop", Resource: "deployments"}, true},
		{"TRACE", "/api/v1/nodes/a", Request{Verb: "trace", Resource: "nodes", Name: "a"}, true},
		{"GET", "/api", Request{}, false},
		{"GET", "/api/v1", Request{}, false},
		{"GET", "/apis/apps/v1", Request{}, false},
		{"GET", "/version", Request{}, false},
		{"GET", "/", Request{}, false},
		{"GET", "", Request{}, false},
	} {
		t.Run(tt.method+" "+tt.url, func(t *testing.T) {
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := Parse(tt.method, u); got != tt.want || ok != tt.ok {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}
