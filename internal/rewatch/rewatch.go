// SPDX-License-Identifier: Apache-2.0

// Package rewatch detects that an API server was restored from a backup.
//
// After a restore, the resource versions of the API server continue from the version at the time of the backup. A watch
// that continues from a later version receives neither events nor an error until the server reaches this version again.
// A transport of this package therefore reads the server's current version before it continues a watch. If the current
// version is older than the version of the watch, the transport returns the error that the version has expired. The
// reflector in client-go then lists all objects again.
//
// The check happens often enough, because a watch ends when the API server restarts, and a restore requires a restart.
// Even without a restart, a watch ends after five to ten minutes. Each check costs one small list request.
package rewatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/deployerkit/deployerkit/internal/version"
)

const (
	// listTimeout limits the duration of the list request that reads the server's current resource version.
	listTimeout = 10 * time.Second
	// maxList is the maximum number of bytes of the response that are read. The response contains the metadata of one
	// object.
	maxList = 8 << 20
	// metadataOnly is the Accept header for a list that contains only the metadata of the objects.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
)

// transport is the transport that Wrap returns.
type transport struct{ next http.RoundTripper }

// Wrap returns a transport that sends requests through `next`. If a request continues a watch from a resource version
// that is newer than the current one of the API server, the server was restored from a backup. The returned transport
// then refuses to continue the watch. If `next` is nil, http.DefaultTransport is used. If `next` is already the result
// of Wrap, Wrap returns `next`.
func Wrap(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if t, ok := next.(*transport); ok {
		return t
	}
	return &transport{next}
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	query, ok := parseContinuedWatch(req)
	if !ok {
		return t.next.RoundTrip(req)
	}
	from := query.Get("resourceVersion")
	current, refusal, err := t.getCurrentVersion(req, query)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if !version.IsOlder(current, from) {
		return t.next.RoundTrip(req)
	}
	klog.FromContext(req.Context()).Info("The API server was restored from a backup. Its objects are listed again", "path", req.URL.Path, "watched", from, "current", current)
	return newExpiredResponse(req, from, current)
}

// parseContinuedWatch returns the query of a request that continues a watch. The second result is false for all other
// requests.
func parseContinuedWatch(req *http.Request) (url.Values, bool) {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.RawQuery, "watch=") {
		return nil, false
	}
	query := req.URL.Query()
	watch, from := query.Get("watch"), query.Get("resourceVersion")
	return query, (watch == "true" || watch == "1") && from != "" && from != "0" && query.Get("sendInitialEvents") != "true"
}

// getCurrentVersion returns the current resource version of the API server. The result is empty if the server does not
// return one, for example because the client may only watch the objects. If the server is overloaded or fails,
// `refusal` is the server's response.
func (t *transport) getCurrentVersion(req *http.Request, query url.Values) (current string, refusal *http.Response, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), listTimeout)
	defer cancel()
	list := req.Clone(ctx)
	for _, option := range []string{"watch", "resourceVersion", "resourceVersionMatch", "timeout", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"} {
		query.Del(option)
	}
	query.Set("limit", "1") // without resourceVersion, the response contains the latest version
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
		return "", nil, fmt.Errorf("read the latest resourceVersion from the API server: %w", err)
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

// newExpiredResponse returns the response "410 Gone", which makes the client list the objects and begin a new watch.
func newExpiredResponse(req *http.Request, from, current string) (*http.Response, error) {
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
