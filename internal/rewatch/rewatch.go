// SPDX-License-Identifier: Apache-2.0

// Package rewatch notices that an API server was restored from a backup.
//
// The resource versions of a restored API server begin again where they were at the time of the backup. A watch that
// continues from a later version gets no events, and no error either, until the server has given out that many versions
// again. A transport of this package therefore asks for the server's version before it continues a watch. If that
// version is older, it refuses the watch as expired, so that a reflector lists all objects again.
//
// Watches end when an API server restarts, which a restore requires, and otherwise after five to ten minutes. The price
// is one small list for each of them.
package rewatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/deployerkit/deployerkit/internal/version"
)

const (
	// listTimeout bounds how long the server may take to tell its version.
	listTimeout = 10 * time.Second
	// maxList is how much of the answer is read. It holds the metadata of one object.
	maxList = 8 << 20
	// metadataOnly asks for a list without the content of its objects.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
)

// transport is what Wrap returns.
type transport struct{ next http.RoundTripper }

// Wrap returns a transport that sends requests through next and refuses to continue a watch on a restored API server.
// The default for next is http.DefaultTransport. Wrapping a transport again has no effect.
func Wrap(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if t, ok := next.(*transport); ok {
		return t
	}
	return &transport{next}
}

// WrappedRoundTripper returns the transport that t wraps, for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	from := query.Get("resourceVersion")
	if !continues(query) {
		return t.next.RoundTrip(req)
	}
	current, refusal, err := t.current(req, query)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if !version.Older(current, from) {
		return t.next.RoundTrip(req)
	}
	klog.FromContext(req.Context()).Info("The API server was restored from a backup. Its objects are listed again", "path", req.URL.Path, "watched", from, "current", current)
	return expired(req, from, current)
}

// continues reports whether a request continues a watch.
func continues(query url.Values) bool {
	watch, from := query.Get("watch"), query.Get("resourceVersion")
	return (watch == "true" || watch == "1") && from != "" && from != "0" && query.Get("sendInitialEvents") != "true"
}

// current returns the version that the API server has now. The version is empty if the server does not tell it, as where
// only watches are allowed. A refusal is the answer of a server that is not ready.
func (t *transport) current(req *http.Request, query url.Values) (current string, refusal *http.Response, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), listTimeout)
	defer cancel()
	list := req.Clone(ctx)
	for _, option := range []string{"watch", "resourceVersion", "resourceVersionMatch", "timeout", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"} {
		query.Del(option)
	}
	query.Set("limit", "1") // without a version, a list tells the latest
	list.URL.RawQuery = query.Encode()
	list.Header.Set("Accept", metadataOnly)
	resp, err := t.next.RoundTrip(list)
	if err != nil {
		return "", nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if closed := resp.Body.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read the version of the API server: %w", err)
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError:
		resp.Body, resp.Request = io.NopCloser(bytes.NewReader(body)), req
		return "", resp, nil
	}
	var answer metav1.PartialObjectMetadataList
	if json.Unmarshal(body, &answer) != nil {
		return "", nil, nil
	}
	return answer.ResourceVersion, nil, nil
}

// expired is the answer to a watch that must begin anew.
func expired(req *http.Request, from, current string) (*http.Response, error) {
	status := apierrors.NewResourceExpired(fmt.Sprintf("resource version %s is later than %s, the latest of the API server", from, current)).ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(http.StatusGone), StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}
