// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrWrite is the error for a request that would change a cluster.
var ErrWrite = errors.New("the page never writes to a cluster")

// NewReadOnly returns a transport that passes on only requests that change nothing: reads, and writes that the API server
// executes as a dry run. All other requests fail with ErrWrite. The signature is that of rest.Config.Wrap.
func NewReadOnly(next http.RoundTripper) http.RoundTripper { return readOnly{next: next} }

type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	dryRun := req.URL.Query()["dryRun"]
	if req.Method == http.MethodGet || req.Method == http.MethodHead || len(dryRun) == 1 && dryRun[0] == "All" {
		return r.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close() // a transport must close the body; the error changes nothing
	}
	return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, ErrWrite)
}
