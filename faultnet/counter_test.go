// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

func TestRequestOf(t *testing.T) {
	const items = "/apis/landscaper.gardener.cloud/v1alpha1/namespaces/ns/deployitems"
	type request = faultnet.Request
	tests := map[string]struct {
		method, url string
		want        request
		counted     bool
	}{
		"get":               {"GET", items + "/a", request{"get", "deployitems", "", "ns", "a"}, true},
		"list":              {"GET", items, request{"list", "deployitems", "", "ns", ""}, true},
		"patch of status":   {"PATCH", items + "/a/status", request{"patch", "deployitems", "status", "ns", "a"}, true},
		"create":            {"POST", items, request{"create", "deployitems", "", "ns", ""}, true},
		"update":            {"PUT", items + "/a", request{"update", "deployitems", "", "ns", "a"}, true},
		"delete":            {"DELETE", items + "/a", request{"delete", "deployitems", "", "ns", "a"}, true},
		"delete collection": {"DELETE", items, request{"deletecollection", "deployitems", "", "ns", ""}, true},
		"core":              {"GET", "/api/v1/namespaces/ns/secrets/s", request{"get", "secrets", "", "ns", "s"}, true},
		"a namespace":       {"GET", "/api/v1/namespaces/ns", request{"get", "namespaces", "", "", "ns"}, true},
		"cluster-wide":      {"GET", "/apis/apps/v1/deployments", request{"list", "deployments", "", "", ""}, true},
		"watch":             {"GET", items + "?watch=true", request{"watch", "deployitems", "", "ns", ""}, false},
		"event":             {"POST", "/apis/events.k8s.io/v1/namespaces/ns/events", request{"create", "events", "", "ns", ""}, false},
		"lease":             {"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", request{"update", "leases", "", "ns", "l"}, false},
		"discovery":         {"GET", "/apis/apps/v1", request{}, false},
		"health":            {"GET", "/readyz", request{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), test.method, test.url, nil)
			got, counted := faultnet.RequestOf(req)
			if diff := cmp.Diff(test.want, got); diff != "" || counted != test.counted {
				t.Errorf("counted %t, -want +got:\n%s", counted, diff)
			}
		})
	}
}

func TestCounter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(server.Close)
	var counter faultnet.Counter
	plain := &rest.Config{Host: server.URL}
	c, err := rest.HTTPClientFor(counter.Wrap(plain))
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	const item = "/apis/g/v1/namespaces/ns/deployitems/a"
	for _, method := range []string{"GET", "PATCH", "PATCH"} {
		if _, err := send(method, item); err != nil {
			t.Fatal(err)
		}
	}
	before := counter.Snapshot()
	if before.Sum() != 3 || before.OnlyReads().Sum() != 1 || before.OnlyWrites().Sum() != 2 {
		t.Errorf("counted:\n%s", before)
	}
	counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Subresource == "status" },
		faultnet.OnlyFirst(1, faultnet.ReturnStatus(http.StatusConflict, metav1.StatusReasonConflict))))
	for i, want := range []int{http.StatusConflict, http.StatusNoContent} {
		if code, err := send("PATCH", item+"/status"); err != nil || code != want {
			t.Errorf("request %d: %d, %v, want %d", i, code, err, want)
		}
	}
	since := counter.Snapshot().Since(before)
	if got := since.ForObject("deployitems", "ns", "a").String(); got != "2 patch deployitems/status ns/a" {
		t.Errorf("since then: %q", got)
	}
	counter.SetInjector(faultnet.ReturnError(errBoom))
	if _, err := send("GET", item); !errors.Is(err, errBoom) {
		t.Errorf("broken: %v", err)
	}
	if plain.WrapTransport != nil {
		t.Error("the caller's configuration was changed")
	}
}
