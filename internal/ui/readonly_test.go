// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTransportRejectsWrites(t *testing.T) {
	received := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received++ }))
	defer server.Close()
	c := &http.Client{Transport: NewReadOnly(http.DefaultTransport)}
	for name, tc := range map[string]struct {
		method, query string
		allowed       bool
	}{
		"a read passes":                              {http.MethodGet, "", true},
		"a dry run passes":                           {http.MethodPatch, "?dryRun=All&force=true", true},
		"a patch is rejected [U4]":                   {http.MethodPatch, "", false},
		"a creation is rejected [U4]":                {http.MethodPost, "", false},
		"an update is rejected [U4]":                 {http.MethodPut, "", false},
		"a deletion is rejected [U4]":                {http.MethodDelete, "", false},
		"an empty dry run is rejected [U4]":          {http.MethodPatch, "?dryRun=", false},
		"two values of the dry run are refused [U4]": {http.MethodPatch, "?dryRun=All&dryRun=", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := received
			req, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+"/api"+tc.query, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if got := received > before; got != tc.allowed || errors.Is(err, ErrWrite) == tc.allowed {
				t.Errorf("the server received the request: %t, error %v; want %t", got, err, tc.allowed)
			}
		})
	}
}

func TestClientsOfServerCannotWrite(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			t.Errorf("the API server received %s %s", req.Method, req.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["create"]}]}`))
	}))
	defer api.Close()
	s, err := NewServer(Options{Config: &rest.Config{Host: api.URL}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]client.Client{"deploy items": s.client, "deployers": s.host} {
		t.Run("the client for the cluster of the "+name+" returns an error [U4]", func(t *testing.T) {
			cm := &corev1.ConfigMap{}
			cm.Namespace, cm.Name = "shop", "web"
			if err := c.Create(t.Context(), cm); !errors.Is(err, ErrWrite) {
				t.Errorf("create: got %v, want ErrWrite", err)
			}
		})
	}
}
