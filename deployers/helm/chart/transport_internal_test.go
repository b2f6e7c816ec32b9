// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestObservedBody(t *testing.T) {
	t.Run("an answer that ends because the caller gave up cannot be read [Ex28]", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer server.Close()
		sources, err := New(Options{AllowPrivateAddresses: true, Hosts: []Host{{Name: strings.TrimPrefix(server.URL, "http://"), PlainHTTP: true}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := sources.Remote.(*source).authorize(repositoryAuth{}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if data, err := io.ReadAll(resp.Body); err != nil || len(data) != 0 {
			t.Errorf("before the caller gives up: %q, %v", data, err)
		}
		cancel()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("after the caller has given up: %v, want %v", err, context.Canceled)
		}
	})
}
