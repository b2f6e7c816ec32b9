// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/targets"
)

// discovered is a response to a discovery request for the groups below /apis.
const discovered = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
	{"metadata":{"name":"example.org"},"versions":[
		{"version":"v2","freshness":"Current","resources":[%s,
			{"resource":"reviews","responseKind":{"kind":"Review"},"scope":"Cluster","singularResource":"x","verbs":["create"]}]},
		{"version":"v1","freshness":"Current","resources":[%[1]s]}]},
	{"metadata":{"name":"broken.example.org"},"versions":[{"version":"v1","freshness":"Stale","resources":[]}]}]}`

const widgets = `{"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Namespaced","singularResource":"x","verbs":["get","list","delete"]}`

func TestListDeletableResources(t *testing.T) {
	api := newAPI(t, "t")
	c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t")))
	api.set(func() {
		api.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/apis" {
				return false
			}
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprintf(w, discovered, widgets)
			return true
		}
	})
	found, missing, err := c.ListDeletableResources(t.Context())
	if err != nil || !slices.Equal(missing, []string{"broken.example.org/v1"}) {
		t.Fatal(missing, err)
	}
	var got []string
	for _, one := range found {
		got = append(got, fmt.Sprintf("%s/%s %s %s %t", one.Group, one.Version, one.Name, one.Kind, one.Namespaced))
	}
	if diff := cmp.Diff([]string{"example.org/v2 widgets Widget true"}, got); diff != "" {
		t.Errorf("want only the preferred version of what can be listed and deleted [F37]: %s", diff)
	}
	api.set(func() {
		api.handle = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
	})
	if _, _, err := c.ListDeletableResources(t.Context()); err == nil {
		t.Error("no error although the target does not answer")
	}
}
