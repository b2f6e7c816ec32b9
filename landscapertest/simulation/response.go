// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newResponse returns a response in JSON.
func newResponse(req *http.Request, status int, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)), Request: req,
	}, nil
}

// newObjectResponse returns a response with an object, or with its metadata only.
func newObjectResponse(req *http.Request, status int, obj object) (*http.Response, error) {
	return newResponse(req, status, convert(req, obj))
}

// newErrorResponse returns a response with the status of an error.
func newErrorResponse(req *http.Request, err error) *http.Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	body := status.Status()
	body.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	res, err := newResponse(req, int(body.Code), body)
	if err != nil {
		res, _ = newResponse(req, http.StatusInternalServerError, metav1.Status{}) // marshalling an empty status cannot fail
	}
	if d := body.Details; d != nil && d.RetryAfterSeconds > 0 {
		res.Header.Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	return res
}

// wantsMetadata reports whether the client asks for the metadata of objects only.
func wantsMetadata(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// convert returns an object in the form that the client asks for.
func convert(req *http.Request, obj object) map[string]any {
	if !wantsMetadata(req) {
		return obj.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj.Object["metadata"]}
}
