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

func answer(code int32, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message, Details: details}}
}

func TestClassify(t *testing.T) {
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
			deployment, answer(500, "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema", nil),
			Error{Path: ".spec.x", Reason: "field not declared in schema", Class: Permanent},
		},
		"typed patch, value of a Secret": {
			secret, answer(500, `failed to create typed patch object (shop/s; v1, Kind=Secret): .data.k: expected string, got &value.valueUnstructured{Value:"x"}`, nil),
			Error{Path: ".data.k", Reason: "expected string", Class: Permanent},
		},
		"typed patch, several": {
			deployment, answer(500, "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n  .spec.x: field not declared in schema\n  .spec.y: field not declared in schema", nil),
			Error{Path: ".spec.x", Reason: "field not declared in schema .spec.y: field not declared in schema", Class: Permanent},
		},
		"a duplicate key is shown [F104]": {
			deployment, answer(500, `failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="web"]`, nil),
			Error{Path: ".spec.template.spec.containers", Reason: `duplicate entries for key [name="web"]`, Class: Permanent},
		},
		"a duplicate key of a Secret is not shown [F104]": {
			secret, answer(500, `failed to create typed patch object (shop/s; v1, Kind=Secret): .metadata.ownerReferences: duplicate entries for key [uid="x"]`, nil),
			Error{Path: ".metadata.ownerReferences", Reason: "duplicate entries for key [uid=…]", Class: Permanent},
		},
		"unknown fields are named as after an apply [F104]": {
			deployment, answer(400, `Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.x", unknown field "spec.y"`, nil),
			Error{Path: ".spec.x", Reason: "field not declared in schema .spec.y: field not declared in schema", Class: Permanent},
		},
		"unknown fields of a patch are named without the patch [F104]": {
			secret, answer(422, ` "" is invalid: patch: Invalid value: "{\"data\":{\"k\":\"v\"}}": strict decoding error: unknown field "x"`, cause("patch", `Invalid value: "{}": strict decoding error: unknown field "x"`)),
			Error{Path: ".x", Reason: "field not declared in schema", Class: Permanent},
		},
		"conversion": {deployment, answer(500, "failed to convert new object (x): unable", nil), Error{Reason: "failed to convert new object (x): unable", Class: Permanent}},
		"invalid": {
			deployment, answer(422, "…", cause("spec.replicas", "must be positive")),
			Error{Path: ".spec.replicas", Reason: "must be positive", Class: Permanent},
		},
		"denied, with a word about a Secret": {
			secret, answer(403, `admission webhook "w" denied the request: label team is missing`, nil),
			Error{Reason: "admission webhook … denied the request: label team is missing", Class: Retry, webhook: "w"},
		},
		"denied, with a known value": {
			secret, answer(403, `admission webhook "w" denied the request: it is CANARY`, nil),
			Error{Reason: "admission webhook … denied the request: it is ***", Class: Retry, webhook: "w"},
		},
		"denied, with the old Secret as Go prints it": {
			secret, answer(403, `admission webhook "w" denied the request: was map[x:old-secret]`, nil),
			Error{Reason: "admission webhook … denied the request: was …", Class: Retry, webhook: "w"},
		},
		"denied, with the old Secret as YAML": {
			secret, answer(403, "admission webhook \"w\" denied the request: was data: \n  x: old-secret", nil),
			Error{Reason: "admission webhook … denied the request: was …", Class: Retry, webhook: "w"},
		},
		"denied, with a quotation that does not end in time": {
			secret, answer(403, `denied the request: "`+strings.Repeat("old-secret ", 200)+`" is bad`, nil),
			Error{Reason: "denied the request: … is bad", Class: Retry},
		},
		"a refusal by a webhook is retried although its code is 422 [F73]": {
			deployment, answer(422, `admission webhook "w" denied the request: label team is missing`, cause("", "label team is missing")),
			Error{Reason: `admission webhook "w" denied the request: label team is missing`, Class: Retry, webhook: "w"},
		},
		"a refusal by a webhook is retried although its code is 413 [F73]": {
			deployment, answer(413, `admission webhook "w" denied the request: too large`, nil),
			Error{Reason: `admission webhook "w" denied the request: too large`, Class: Retry, webhook: "w"},
		},
		"a refusal by a webhook without explanation is retried [F73]": {
			deployment, answer(400, `admission webhook "w" denied the request without explanation`, nil),
			Error{Reason: `admission webhook "w" denied the request without explanation`, Class: Retry, webhook: "w"},
		},
		"a refusal by a policy is retried although its code is 422 [F73]": {
			deployment, answer(422, `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, cause("", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")),
			Error{Reason: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, Class: Retry},
		},
		"a refusal by a mutating policy is retried [F73]": {
			deployment, answer(422, `deployments.apps "web" is forbidden: policy 'p' with binding 'b' denied request: no`, nil),
			Error{Reason: `deployments.apps "web" is forbidden: policy 'p' with binding 'b' denied request: no`, Class: Retry},
		},
		"a refusal by a policy with the reason Unauthorized does not concern the credentials [F73]": {
			deployment, &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: 401, Reason: metav1.StatusReasonUnauthorized,
				Message: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
			}},
			Error{Reason: `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, Class: Retry, Status: metav1.StatusReasonForbidden},
		},
		"an invalid value that quotes a refusal is not retried [F73]": {
			deployment, answer(422, `Deployment "web" is invalid: x: Invalid value: admission webhook "w" denied the request: no`, cause("x", "bad")),
			Error{Path: ".x", Reason: "bad", Class: Permanent},
		},
		"invalid value of a Secret": {
			secret, answer(422, "…", cause("data", `Invalid value: "top": bad "top"`)), Error{Path: ".data", Reason: "bad …", Class: Permanent},
		},
		"too large for etcd": {deployment, answer(500, "etcdserver: request is too large", nil), Error{Reason: "the object is too large to be stored (limit about 1.5 MiB)", Class: Permanent}},
		"too large for gRPC": {deployment, answer(500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (1 vs. 2)", nil), Error{Reason: "the object is too large to be stored (limit about 1.5 MiB)", Class: Permanent}},
		"too large for HTTP": {deployment, answer(413, "limit is 3145728", nil), Error{Reason: "the object is too large to be stored (limit about 1.5 MiB)", Class: Permanent}},
		"no namespace": {
			deployment, answer(404, `namespaces "shop" not found`, &metav1.StatusDetails{Kind: "namespaces", Name: "shop"}),
			Error{Reason: "the namespace shop does not exist", Class: Wait},
		},
		"namespace goes": {
			deployment, answer(403, "…", &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}),
			Error{Reason: "the namespace shop is being deleted", Class: Wait},
		},
		"no such kind [F71]": {deployment, &meta.NoKindMatchError{}, Error{Reason: "the cluster does not know apps/v1, Kind=Deployment yet", Class: Wait, unserved: true}},
		"incomplete discovery [F70]": {
			deployment, &absence.KindError{State: absence.KindNotServed, Reason: "apps/v1: stale", Err: &meta.NoKindMatchError{}},
			Error{Reason: "the cluster does not serve apps/v1, Kind=Deployment at the moment: apps/v1: stale", Class: Wait, unserved: true},
		},
		"only in another version [F70]": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v2", Err: &meta.NoKindMatchError{}},
			Error{Reason: "the cluster does not serve apps/v1, Kind=Deployment yet, only the version v2", Class: Wait, unserved: true},
		},
		"listed but not found [F70]": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v1", Err: answer(404, "404 page not found", nil)},
			Error{Reason: "the cluster does not serve apps/v1, Kind=Deployment at the moment, although it lists the kind", Class: Wait, unserved: true},
		},
		"no right to look [F70]": {
			deployment, &absence.KindError{Kind: deployment.GVK().GroupKind(), State: absence.KindForbidden, Reason: "no rights", Err: &meta.NoKindMatchError{}},
			Error{Reason: "the cluster does not serve Deployment.apps: no rights", Class: Retry},
		},
		"create only": {
			deployment, &absence.KindError{State: absence.KindServed, Version: "v1", Unsupported: true, Err: answer(404, "…", nil)},
			Error{Reason: "the API server cannot apply this kind: its objects cannot be read", Class: Permanent},
		},
		"a webhook that cannot be called [F93]": {
			deployment, answer(500, `Internal error occurred: failed calling webhook "w": failed to call webhook: no endpoints`, nil),
			Error{Reason: `Internal error occurred: failed calling webhook "w": failed to call webhook: no endpoints`, Class: Retry, webhook: "w"},
		},
		"object gone":   {deployment, answer(404, "gone", &metav1.StatusDetails{Kind: "deployments", Name: "web"}), Error{Reason: "gone", Class: Retry}},
		"forbidden":     {deployment, answer(403, "no\nrights", nil), Error{Reason: "no rights", Class: Retry}},
		"unauthorized":  {deployment, answer(401, "who?", nil), Error{Reason: "who?", Class: Permanent}},
		"overloaded":    {deployment, answer(429, "later", nil), Error{Reason: "later", Class: Retry}},
		"other 500":     {deployment, answer(500, "boom", nil), Error{Reason: "boom", Class: Retry}},
		"network":       {deployment, errBoom, Error{Reason: "dial: boom ***", Class: Retry, cause: errBoom}},
		"ended context": {deployment, context.Canceled, Error{Reason: "context canceled", Class: Retry, cause: context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			got := classify(c.ref, c.err, redact.New(shortestSecret, canary))
			want := c.want
			want.Ref = c.ref
			same := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || a == nil && b == nil })
			if diff := cmp.Diff(want, *got, cmp.AllowUnexported(Error{}), cmpopts.IgnoreFields(Error{}, "told"), same); diff != "" {
				t.Error(diff)
			}
			if ClassOf(got) == Permanent != (want.Class == Permanent) {
				t.Errorf("ClassOf says %s", ClassOf(got))
			}
			if c.want.cause != nil && !errors.Is(Errors{got}, c.want.cause) {
				t.Error("the cause is hidden")
			}
		})
	}
}

func TestResultOfARefusalByAdmission(t *testing.T) {
	for _, code := range []int32{400, 401, 403, 404, 409, 413, 422, 429, 500} {
		t.Run(fmt.Sprintf("a refusal with the code %d is a failure and says nothing about the object [F73]", code), func(t *testing.T) {
			denied := answer(code, `admission webhook "w" denied the request: a is immutable, uid mismatch`, &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Field: "metadata.uid", Message: "updates to a are immutable"}},
			})
			if got := response.ClassOf(absence.Gone, denied); got != response.Failed {
				t.Errorf("want %q, got %q", response.Failed, got)
			}
			if got := classify(deployment, denied, nil); got.Class != Retry {
				t.Errorf("want the class %q, got %q", Retry, got.Class)
			}
		})
	}
}

// TestErrorsAggregate checks that errors.Is and errors.As find the errors in an Errors value [H-15].
func TestErrorsAggregate(t *testing.T) {
	t.Run("codes inside are found [H-15]", func(t *testing.T) {
		many := Errors{}
		for range 8 {
			many = append(many, &Error{Ref: deployment, Reason: "later", Class: Retry})
		}
		if got := ClassOf(many); got != Retry {
			t.Error(got)
		}
		many[6] = &Error{Ref: deployment, Reason: "never", Class: Permanent, Status: metav1.StatusReasonUnauthorized}
		if got := ClassOf(many); got != Permanent {
			t.Error(got)
		}
		if text := many.Error(); !strings.HasSuffix(text, "; and 3 more") || strings.Contains(text, "\n") {
			t.Error(text)
		}
	})
	t.Run("none is no error", func(t *testing.T) {
		if err := (Errors{}).err(); err != nil {
			t.Error(err)
		}
	})
}

// TestDenialOfUnknownSecret covers a Secret that is no longer desired, so that the engine does not know its values. The
// answer of a webhook may quote these values.
func TestDenialOfUnknownSecret(t *testing.T) {
	denied := answer(403, `admission webhook "w" denied the request: the password old-secret is in use`, nil)
	policy := answer(422, `secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: old-secret`, nil)
	for name, c := range map[string]struct {
		ref     Ref
		err     error
		claimed bool
		want    string
	}{
		"webhook":  {secret, denied, false, "admission webhook … denied the request: …"},
		"policy":   {secret, policy, false, "secrets … is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: …"},
		"conflict": {secret, answer(409, "the password is old-secret", nil), false, "the API server rejected the request: no reason given"},
		"no right": {
			secret, answer(403, `secrets "s" is forbidden: User "u" cannot delete resource "secrets" in API group "" in the namespace "shop"`, nil),
			false, "secrets … is forbidden: User … cannot delete resource … in API group … in the namespace …",
		},
		"network":   {secret, errors.New("dial: refused"), false, "dial: refused"},
		"desired":   {secret, denied, true, "admission webhook … denied the request: the password old-secret is in use"},
		"no secret": {deployment, denied, false, `admission webhook "w" denied the request: the password old-secret is in use`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newResults(nil).updateWaiting(c.ref, c.err, c.claimed); got.Reason != c.want {
				t.Errorf("got %q, want %q", got.Reason, c.want)
			}
		})
	}
}

func TestClean(t *testing.T) {
	h := redact.New(shortestSecret)
	hideSecret(h, map[string]any{
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
