// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"net/http"
)

// ErrRedirect is the error of a request that the target answered with a redirect. Following one would send the
// credentials to wherever the target says.
var ErrRedirect = errors.New("the server answered with a redirect, which is not followed")

// noRedirects refuses redirects where every HTTP client on top of it is held to it.
type noRedirects struct{ next http.RoundTripper }

func (t *noRedirects) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return nil, errors.Join(ErrRedirect, resp.Body.Close())
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *noRedirects) WrappedRoundTripper() http.RoundTripper { return t.next }
