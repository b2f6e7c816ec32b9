// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// endless is what a hostile server sends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

// TestEndlessAnswers: no server can fill the memory of the deployer with one answer, with or without a token.
func TestEndlessAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, method, url string
		code                int
		want                int64
	}{
		"discovery":      {"the list of groups", http.MethodGet, "/apis", http.StatusOK, maxDiscovery},
		"below a prefix": {"of a server with a path", http.MethodGet, "/clusters/a/api", http.StatusOK, maxDiscovery},
		"read":           {"an object or a list", http.MethodGet, "/api/v1/configmaps", http.StatusOK, maxList},
		"group":          {"the kinds of a group", http.MethodGet, "/apis/apps/v1", http.StatusOK, maxList},
		"write":          {"one object", http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", http.StatusOK, maxObject},
		"error":          {"a text", http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", http.StatusConflict, maxErrorBody},
		"refused watch":  {"a text, too", http.MethodGet, "/api/v1/configmaps?watch=true", http.StatusForbidden, maxErrorBody},
	} {
		t.Run(name, func(t *testing.T) {
			resp := &http.Response{StatusCode: tc.code, Header: http.Header{}, Body: endless{}}
			tame(httptest.NewRequest(tc.method, tc.url, http.NoBody), resp, "")
			got, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 2*maxList))
			if tooLarge := new(http.MaxBytesError); !errors.As(err, &tooLarge) || got != tc.want {
				t.Errorf("%s: read %d bytes, %v; want %d and an error", tc.reason, got, err, tc.want)
			}
		})
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{}}
	tame(httptest.NewRequest(http.MethodGet, "/api/v1/configmaps?watch=1", http.NoBody), resp, "")
	if got, err := io.CopyN(io.Discard, resp.Body, 2*maxList); err != nil {
		t.Errorf("a watch goes on for as long as it likes: read %d bytes, %v", got, err)
	}
}
