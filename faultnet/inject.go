// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReturnStatus returns an Injector that responds with a failure status. The usual reason for 409 is
// metav1.StatusReasonConflict, for 429 metav1.StatusReasonTooManyRequests, and for 500
// metav1.StatusReasonInternalError.
func ReturnStatus(code int, reason metav1.StatusReason) Injector {
	return returnStatus(code, reason, "injected by the test")
}

// returnStatus is like ReturnStatus, but the failure status also contains the given message.
func returnStatus(code int, reason metav1.StatusReason, message string) Injector {
	return func(req *http.Request) (*http.Response, error) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, //nolint:gosec // HTTP codes are small
		}
		body, err := json.Marshal(status)
		if err != nil {
			return nil, err
		}
		return &http.Response{
			Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
			ContentLength: int64(len(body)), Request: req,
		}, nil
	}
}

// BlockRequest returns an Injector that blocks requests until their context is done.
func BlockRequest() Injector {
	return func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
}

// ReturnError returns an Injector that fails requests with a network error.
func ReturnError(err error) Injector {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// When returns an Injector that calls f only for requests for which ok returns true.
func When(ok func(Request) bool, f Injector) Injector {
	return func(req *http.Request) (*http.Response, error) {
		if r, counted := requestOf(req); !counted || !ok(r) {
			return nil, nil
		}
		return f(req)
	}
}

// OnlyFirst returns an Injector that calls f only for the first n requests.
func OnlyFirst(n int, f Injector) Injector {
	var left atomic.Int64
	left.Store(int64(n))
	return func(req *http.Request) (*http.Response, error) {
		if left.Add(-1) < 0 {
			return nil, nil
		}
		return f(req)
	}
}
