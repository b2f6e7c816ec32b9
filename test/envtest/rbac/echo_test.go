// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/faultnet"
)

// echo creates the response to a request from the body and the credentials of the request. If it returns false, the
// request is sent to the API server instead.
type echo func(body map[string]any, raw []byte, credentials string) (metav1.Status, bool)

const denied = `admission webhook "echo.example.com" denied the request: `

// forms contains different ways in which a webhook or a server could quote a request in its response.
var forms = map[string]echo{
	"json": newMessageEcho(403, func(_ map[string]any, raw []byte) string { return denied + string(raw) }),
	"go":   newMessageEcho(403, func(body map[string]any, _ []byte) string { return denied + fmt.Sprint(body) }),
	"yaml": newMessageEcho(403, func(body map[string]any, _ []byte) string { return denied + asYAML(body) }),
	"decoded": newMessageEcho(403, func(body map[string]any, _ []byte) string {
		return denied + "do not use the password " + strings.Join(listTexts(body), " or ")
	}),
	"quoted": newMessageEcho(403, func(body map[string]any, _ []byte) string {
		return denied + fmt.Sprintf("do not use %q", listTexts(body))
	}),
	"policy": newMessageEcho(422, func(body map[string]any, _ []byte) string {
		return "ValidatingAdmissionPolicy 'p' denied request: " + fmt.Sprint(listTexts(body))
	}),
	"internal": newMessageEcho(500, func(body map[string]any, _ []byte) string {
		return "Internal error occurred: cannot store " + fmt.Sprint(body)
	}),
	"typed": newMessageEcho(500, func(body map[string]any, _ []byte) string {
		return "failed to create typed patch object (a/b; /v1, Kind=Secret): .data.x: expected string, got &value.valueUnstructured{Value:" + fmt.Sprint(body) + "}"
	}),
	"broken": newMessageEcho(503, func(body map[string]any, _ []byte) string { return "upstream said: " + asYAML(body) }),
	"invalid": func(body map[string]any, _ []byte, _ string) (metav1.Status, bool) {
		return withCause(422, metav1.StatusReasonInvalid, "data.x", fmt.Sprintf("Invalid value: %q: must not be %q", listTexts(body), listTexts(body))), true
	},
	"conflict": func(body map[string]any, _ []byte, _ string) (metav1.Status, bool) {
		return withCause(409, metav1.StatusReasonConflict, ".data.x", fmt.Sprintf("conflict with %q: is %v", "other", listTexts(body))), true
	},
	"credentials": func(_ map[string]any, _ []byte, credentials string) (metav1.Status, bool) {
		return metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no such user: " + credentials}, credentials != ""
	},
}

// newMessageEcho returns an echo whose response contains a message without details.
func newMessageEcho(code int32, say func(body map[string]any, raw []byte) string) echo {
	reasons := map[int32]metav1.StatusReason{
		403: metav1.StatusReasonForbidden, 422: metav1.StatusReasonInvalid, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	}
	return func(body map[string]any, raw []byte, _ string) (metav1.Status, bool) {
		return metav1.Status{Code: code, Reason: reasons[code], Message: say(body, raw)}, true
	}
}

// withCause returns a status with a cause for the given field. The message of the status also contains the message of
// the cause.
func withCause(code int32, reason metav1.StatusReason, field, message string) metav1.Status {
	return metav1.Status{Code: code, Reason: reason, Message: field + ": " + message, Details: &metav1.StatusDetails{
		Kind: "secrets", Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}},
	}}
}

// toFault returns a fault that responds with the echo of a request. The response quotes the body of the request. It
// quotes `known` instead if `known` is not nil or if the body cannot be decoded.
func (e echo) toFault(known map[string]any) faultnet.Fault {
	return faultnet.NewFault("an echo", func(req *http.Request) (*http.Response, error) {
		credentials := req.Header.Get("Authorization")
		if _, answers := e(nil, nil, credentials); !answers {
			return nil, nil
		}
		raw := []byte{}
		if req.Body != nil {
			var err error
			if raw, err = io.ReadAll(req.Body); err != nil {
				return nil, err
			}
		}
		body := map[string]any{}
		if known != nil || yaml.Unmarshal(raw, &body) != nil {
			body, raw = known, []byte(fmt.Sprintf("%v", known))
		}
		status, _ := e(body, raw, credentials)
		return newStatusResponse(req, status)
	})
}

// newStatusResponse returns a response that contains a status, in the format of the API server.
func newStatusResponse(req *http.Request, status metav1.Status) (*http.Response, error) {
	status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
	raw, err := json.Marshal(status)
	return &http.Response{
		StatusCode: int(status.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(raw)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)),
	}, err
}

// silent contains faults whose responses do not quote the request.
var silent = map[string]faultnet.Fault{
	"lost": faultnet.DropResponse(), "late": faultnet.Timeout(100 * time.Millisecond), "away": faultnet.WebhookFailed("w.example.com"),
}

// listTexts returns the texts in a document, both unchanged and decoded from base64.
func listTexts(value any) []string {
	out := []string{}
	switch v := value.(type) {
	case string:
		out = append(out, v)
		if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
			out = append(out, string(decoded))
		}
	case []any:
		for _, one := range v {
			out = append(out, listTexts(one)...)
		}
	case map[string]any:
		for _, one := range v {
			out = append(out, listTexts(one)...)
		}
	}
	return out
}

func asYAML(body map[string]any) string {
	raw, err := yaml.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
