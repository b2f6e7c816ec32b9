// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/internal/redact"
)

var (
	deployment = Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	secret     = Ref{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "s"}
)

func newAnswer(code int32, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message, Details: details}}
}

func TestNewRequestError(t *testing.T) {
	const canary = "CANARY"
	cause := func(field, message string) *metav1.StatusDetails {
		return &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field, Message: message}}}
	}
	errBoom := errors.New("dial: boom " + canary)
	for name, c := range map[string]struct {
		ref  Ref
		err  error
		want Error
	}{
		"typed patch": {
			deployment, newAnswer(500, "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema", nil),
			Error{Path: ".spec.x", Message: "field not declared in schema", Class: ClassPermanent},
		},
		"typed patch, value of a Secret": {
			secret, newAnswer(500, `failed to create typed patch object (shop/s; v1, Kind=Secret): .data.k: expected string, got &value.valueUnstructured{Value:"x"}`, nil),
			Error{Path: ".data.k", Message: "expected string", Class: ClassPermanent},
		},
		"typed patch, several": {
			deployment, newAnswer(500, "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n  .spec.x: field not declared in schema\n  .spec.y: field not declared in schema", nil),
			Error{Path: ".spec.x", Message: "field not declared in schema .spec.y: field not declared in schema", Class: ClassPermanent},
		},
		"a duplicate key is shown [F104]": {
			deployment, newAnswer(500, `failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="web"]`, nil),
			Error{Path: ".spec.template.spec.containers", Message: `duplicate entries for key [name="web"]`, Class: ClassPermanent},
		},
		"a duplicate key of a Secret is not shown [F104]": {
			secret, newAnswer(500, `failed to create typed patch object (shop/s; v1, Kind=Secret): .metadata.ownerReferences: duplicate entries for key [uid="x"]`, nil),
			Error{Path: ".metadata.ownerReferences", Message: "duplicate entries for key [uid=…]", Class: ClassPermanent},
		},
		"unknown fields are named as after an apply [F104]": {
			deployment, newAnswer(400, `Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.x", unknown field "spec.y"`, nil),
			Error{Path: ".spec.x", Message: "field not declared in schema .spec.y: field not declared in schema", Class: ClassPermanent},
		},
		"unknown fields of a patch are named without the patch [F104]": {
			secret, newAnswer(422, ` "" is invalid: patch: Invalid value: "{\"data\":{\"k\":\"v\"}}": strict decoding error: unknown field "x"`, cause("patch", `Invalid value: "{}": strict decoding error: unknown field "x"`)),
			Error{Path: ".x", Message: "field not declared in schema", Class: ClassPermanent},
		},
		"conversion": {deployment, newAnswer(500, "failed to convert new object (x): unable", nil), Error{Message: "failed to convert new object (x): unable", Class: ClassPermanent}},
		"invalid": {
			deployment, newAnswer(422, "…", cause("spec.replicas", "must be positive")),
			Error{Path: ".spec.replicas", Message: "must be positive", Class: ClassPermanent},
		},
		"denied, with a word about a Secret": {
			secret, newAnswer(403, `admission webhook "w" denied the request: label team is missing`, nil),
			Error{Message: "admission webhook … denied the request: label team is missing", Class: ClassRetry, webhook: "w"},
		},
		"denied, with a known value": {
			secret, newAnswer(403, `admission webhook "w" denied the request: it is CANARY`, nil),
			Error{Message: "admission webhook … denied the request: it is ***", Class: ClassRetry, webhook: "w"},
		},
		"denied, with the old Secret as Go prints it": {
			secret, newAnswer(403, `admission webhook "w" denied the request: was map[x:old-secret]`, nil),
			Error{Message: "admission webhook … denied the request: was …", Class: ClassRetry, webhook: "w"},
		},
		"denied, with the old Secret as YAML": {
			secret, newAnswer(403, "admission webhook \"w\" denied the request: was data: \n  x: old-secret", nil),
			Error{Message: "admission webhook … denied the request: was …", Class: ClassRetry, webhook: "w"},
		},
		"denied, with a quotation that does not end in time": {
			secret, newAnswer(403, `denied the request: "`+strings.Repeat("old-secret ", 200)+`" is bad`, nil),
			Error{Message: "denied the request: … is bad", Class: ClassRetry},
		},
		"a refusal by a webhook is retried although its code is 422 [F73]": {
			deployment, newAnswer(422, `admission webhook "w" denied the request: label team is missing`, cause("", "label team is missing")),
			Error{Message: `admission webhook "w" denied the request: label team is missing`, Class: ClassRetry, webhook: "w"},
		},
		"a refusal by a webhook is retried although its code is 413 [F73]": {
			deployment, newAnswer(413, `admission webhook "w" denied the request: too large`, nil),
			Error{Message: `admission webhook "w" denied the request: too large`, Class: ClassRetry, webhook: "w"},
		},
		"a refusal by a webhook without explanation is retried [F73]": {
			deployment, newAnswer(400, `admission webhook "w" denied the request without explanation`, nil),
			Error{Message: `admission webhook "w" denied the request without explanation`, Class: ClassRetry, webhook: "w"},
		},
		"a refusal by a policy is retried although its code is 422 [F73]": {
			deployment, newAnswer(422, `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, cause("", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")),
			Error{Message: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, Class: ClassRetry},
		},
		"a refusal by a mutating policy is retried [F73]": {
			deployment, newAnswer(422, `deployments.apps "web" is forbidden: policy 'p' with binding 'b' denied request: no`, nil),
			Error{Message: `deployments.apps "web" is forbidden: policy 'p' with binding 'b' denied request: no`, Class: ClassRetry},
		},
		"a refusal by a policy with the reason Unauthorized does not concern the credentials [F73]": {
			deployment, &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: 401, Reason: metav1.StatusReasonUnauthorized,
				Message: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
			}},
			Error{Message: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, Class: ClassRetry, StatusReason: metav1.StatusReasonForbidden},
		},
		"an invalid value that quotes a refusal is not retried [F73]": {
			deployment, newAnswer(422, `Deployment "web" is invalid: x: Invalid value: admission webhook "w" denied the request: no`, cause("x", "bad")),
			Error{Path: ".x", Message: "bad", Class: ClassPermanent},
		},
		"invalid value of a Secret": {
			secret, newAnswer(422, "…", cause("data", `Invalid value: "top": bad "top"`)), Error{Path: ".data", Message: "bad …", Class: ClassPermanent},
		},
		"too large for etcd": {deployment, newAnswer(500, "etcdserver: request is too large", nil), Error{Message: "the object is too large to be stored (limit about 1.5 MiB)", Class: ClassPermanent}},
		"too large for gRPC": {deployment, newAnswer(500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (1 vs. 2)", nil), Error{Message: "the object is too large to be stored (limit about 1.5 MiB)", Class: ClassPermanent}},
		"too large for HTTP": {deployment, newAnswer(413, "limit is 3145728", nil), Error{Message: "the object is too large to be stored (limit about 1.5 MiB)", Class: ClassPermanent}},
		"no namespace": {
			deployment, newAnswer(404, `namespaces "shop" not found`, &metav1.StatusDetails{Kind: "namespaces", Name: "shop"}),
			Error{Message: "the namespace shop does not exist", Class: ClassWait},
		},
		"namespace goes": {
			deployment, newAnswer(403, "…", &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}),
			Error{Message: "the namespace shop is being deleted", Class: ClassWait},
		},
		"no such kind [F71]": {deployment, &meta.NoKindMatchError{}, Error{Message: "the cluster does not know apps/v1, Kind=Deployment yet", Class: ClassWait, unserved: true}},
		"incomplete discovery [F70]": {
			deployment, &absence.KindError{State: absence.KindNotServed, Reason: "apps/v1: stale", Err: &meta.NoKindMatchError{}},
			Error{Message: "the cluster does not serve apps/v1, Kind=Deployment at the moment: apps/v1: stale", Class: ClassWait, unserved: true},
		},
		"only in another version [F70]": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v2", Err: &meta.NoKindMatchError{}},
			Error{Message: "the cluster does not serve apps/v1, Kind=Deployment yet, only the version v2", Class: ClassWait, unserved: true},
		},
		"listed but not found [F70]": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v1", Err: newAnswer(404, "404 page not found", nil)},
			Error{Message: "the cluster does not serve apps/v1, Kind=Deployment at the moment, although it lists the kind", Class: ClassWait, unserved: true},
		},
		"no right to look [F70]": {
			deployment, &absence.KindError{Kind: deployment.GVK().GroupKind(), State: absence.KindForbidden, Reason: "no rights", Err: &meta.NoKindMatchError{}},
			Error{Message: "the cluster does not serve Deployment.apps: no rights", Class: ClassRetry},
		},
		"create only": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v1", Unsupported: true, Err: newAnswer(404, "…", nil)},
			Error{Message: "the API server cannot apply this kind: its objects cannot be read", Class: ClassPermanent},
		},
		"a webhook that cannot be called [F93]": {
			deployment, newAnswer(500, `Internal error occurred: failed calling webhook "w": failed to call webhook: no endpoints`, nil),
			Error{Message: `Internal error occurred: failed calling webhook "w": failed to call webhook: no endpoints`, Class: ClassRetry, webhook: "w"},
		},
		"object gone":   {deployment, newAnswer(404, "gone", &metav1.StatusDetails{Kind: "deployments", Name: "web"}), Error{Message: "gone", Class: ClassRetry}},
		"forbidden":     {deployment, newAnswer(403, "no\nrights", nil), Error{Message: "no rights", Class: ClassRetry}},
		"unauthorized":  {deployment, newAnswer(401, "who?", nil), Error{Message: "who?", Class: ClassPermanent}},
		"overloaded":    {deployment, newAnswer(429, "later", nil), Error{Message: "later", Class: ClassRetry}},
		"other 500":     {deployment, newAnswer(500, "boom", nil), Error{Message: "boom", Class: ClassRetry}},
		"network":       {deployment, errBoom, Error{Message: "dial: boom ***", Class: ClassRetry, cause: errBoom}},
		"ended context": {deployment, context.Canceled, Error{Message: "context canceled", Class: ClassRetry, cause: context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newRequestError(c.ref, c.err, redact.New(minSecretLength, canary))
			want := c.want
			want.Ref = c.ref
			same := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || a == nil && b == nil })
			if diff := cmp.Diff(want, *got, cmp.AllowUnexported(Error{}), cmpopts.IgnoreFields(Error{}, "isFromServer"), same); diff != "" {
				t.Error(diff)
			}
			if GetClass(got) == ClassPermanent != (want.Class == ClassPermanent) {
				t.Errorf("ClassOf says %s", GetClass(got))
			}
			if c.want.cause != nil && !errors.Is(Errors{got}, c.want.cause) {
				t.Error("the cause is hidden")
			}
		})
	}
}

func TestAdmissionDenialIsAFailure(t *testing.T) {
	for _, code := range []int32{400, 401, 403, 404, 409, 413, 422, 429, 500} {
		t.Run(fmt.Sprintf("a refusal with the code %d is a failure and says nothing about the object [F73]", code), func(t *testing.T) {
			denied := newAnswer(code, `admission webhook "w" denied the request: a is immutable, uid mismatch`, &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Field: "metadata.uid", Message: "updates to a are immutable"}},
			})
			if got := response.GetClass(absence.MeaningGone, denied); got != response.ClassFailed {
				t.Errorf("want %q, got %q", response.ClassFailed, got)
			}
			if got := newRequestError(deployment, denied, nil); got.Class != ClassRetry {
				t.Errorf("want the class %q, got %q", ClassRetry, got.Class)
			}
		})
	}
}

// TestErrorsUnwrap checks that errors.Is and errors.As find the errors in an Errors value [H-15].
func TestErrorsUnwrap(t *testing.T) {
	t.Run("errors.As finds error codes inside Errors [H-15]", func(t *testing.T) {
		many := Errors{}
		for range 8 {
			many = append(many, &Error{Ref: deployment, Message: "later", Class: ClassRetry})
		}
		if got := GetClass(many); got != ClassRetry {
			t.Error(got)
		}
		many[6] = &Error{Ref: deployment, Message: "never", Class: ClassPermanent, StatusReason: metav1.StatusReasonUnauthorized}
		if got := GetClass(many); got != ClassPermanent {
			t.Error(got)
		}
		if text := many.Error(); !strings.HasSuffix(text, "; and 3 more") || strings.Contains(text, "\n") {
			t.Error(text)
		}
	})
	t.Run("an empty list of errors is no error", func(t *testing.T) {
		if err := (Errors{}).err(); err != nil {
			t.Error(err)
		}
	})
}

// TestDenialHidesUnknownSecret covers a Secret that is no longer desired, so that the engine does not know its values.
// The answer of a webhook may quote these values.
func TestDenialHidesUnknownSecret(t *testing.T) {
	denied := newAnswer(403, `admission webhook "w" denied the request: the password old-secret is in use`, nil)
	policy := newAnswer(422, `secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: old-secret`, nil)
	for name, c := range map[string]struct {
		ref     Ref
		err     error
		claimed bool
		want    string
	}{
		"webhook":  {secret, denied, false, "admission webhook … denied the request: …"},
		"policy":   {secret, policy, false, "secrets … is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: …"},
		"conflict": {secret, newAnswer(409, "the password is old-secret", nil), false, "the API server rejected the request: no reason given"},
		"no right": {
			secret, newAnswer(403, `secrets "s" is forbidden: User "u" cannot delete resource "secrets" in API group "" in the namespace "shop"`, nil),
			false, "secrets … is forbidden: User … cannot delete resource … in API group … in the namespace …",
		},
		"network":   {secret, errors.New("dial: refused"), false, "dial: refused"},
		"desired":   {secret, denied, true, "admission webhook … denied the request: the password old-secret is in use"},
		"no secret": {deployment, denied, false, `admission webhook "w" denied the request: the password old-secret is in use`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newResults(nil).updateWaiting(c.ref, c.err, c.claimed); got.Message != c.want {
				t.Errorf("got %q, want %q", got.Message, c.want)
			}
		})
	}
}

func TestCleanText(t *testing.T) {
	h := redact.New(minSecretLength)
	maskSecret(h, map[string]any{
		"a": "cGFzc3dvcmQ=", "short": "YQ==", "lines": "bGluZTFcbmxpbmUy", "wrong": "not base64!", "number": 1, "deep": []any{map[string]any{"x": "nested!"}},
	})
	for in, want := range map[string]string{
		"is password":                  "is ***",
		"is cGFzc3dvcmQ= and a":        "is *** and a",
		"not base64! here":             "*** here",
		"a nested! one":                "a *** one",
		"one\n  line\tonly":            "one line only",
		strings.Repeat("ä", 1000):      strings.Repeat("ä", 510) + "…",
		http.StatusText(http.StatusOK): "OK",
	} {
		if got := cleanText(h, in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
