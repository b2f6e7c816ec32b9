// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestWithoutValues(t *testing.T) {
	const canary = `k4n4ry!"secret`
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	document := fmt.Appendf(nil, `{"manifests": [{"data": {"x": %q, "short": "of", "pin": 12345678}, "list": [%q]}]}`, encoded, canary+"-2")
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"plain":    {"what is encoded in the document is known decoded", "it is " + canary, "it is ***"},
		"encoded":  {"as it stands there", "it is " + encoded + "!", "it is ***!"},
		"quoted":   {"with the quotes of Go", fmt.Sprintf("it is %q", canary+"-2"), `it is "***"`},
		"in a map": {"as Go prints it", fmt.Sprint(map[string]string{"x": canary}), "map[x:***]"},
		"whole":    {"the whole document", "object " + string(document), `object {"manifests": [{"data": {"x": "***", "short": "of", "pin": ***}, "list": ["***"]}]}`},
		"longest":  {"one value contains another", canary + "-2 and " + canary, "*** and ***"},
		"words":    {"short values are parts of words", "out of order", "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withoutValues(tc.text, document); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if got := withoutValues("no JSON: "+canary, []byte(canary)); got != "no JSON: ***" {
		t.Errorf("a document that is no JSON is a value: got %q", got)
	}
}

// TestErrorsQuoteNothing: what refuses an item or an export may quote it in any way.
func TestErrorsQuoteNothing(t *testing.T) {
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for _, canary := range []string{"k4n4ry&<k4n4ry>", "k4n4ry\n  k4n4ry\n", `k4n4ry"'\k4n4ry`, "密码是这个k4n4ry", "k4n4ry1234567890\nk4n4ry1234567890\nk4n4ry1234567890"} {
		document := []byte(text(map[string]any{"manifests": []any{map[string]any{"data": map[string]any{
			"x": base64.StdEncoding.EncodeToString([]byte(canary)), "y": canary,
		}}}}))
		for quoting, quoted := range map[string]string{
			"JSON": string(document), "JSON in JSON": text(string(document)), "words": strings.Join(strings.Fields(canary), " "),
			"block":  "x: |\n    " + strings.ReplaceAll(canary, "\n", "\n    "),
			"base64": base64.StdEncoding.EncodeToString(document), "Go": fmt.Sprintf("%q", canary), "bytes": fmt.Sprintf("%d", []byte(canary)),
		} {
			t.Run(text(canary)+" as "+quoting+" [F8]", func(t *testing.T) {
				c := &cycle{stored: &lsv1alpha1.DeployItem{}}
				c.stored.Spec.Configuration = &runtime.RawExtension{Raw: document}
				got := c.refused(errors.New("denied: " + quoted)).Error()
				for _, part := range []string{"k4n4ry", "密码", "azRu", "NG40", "107 52 110 52"} {
					if strings.Contains(got, part) {
						t.Errorf("%q of %q", got, quoted)
					}
				}
				if !strings.HasPrefix(got, "denied: ") {
					t.Error(got)
				}
			})
		}
	}
	t.Run("an item with too many values [F7]", func(t *testing.T) {
		large := text(strings.Repeat("value ", 3<<19))
		if got := withoutValues("denied: k4n4ry", []byte(large)); strings.Contains(got, "k4n4ry") || got == "" {
			t.Error(got)
		}
	})
}

// TestRefusedIsQuiet: an admission webhook of the Landscaper cluster that quotes the item tells nobody its configuration.
func TestRefusedIsQuiet(t *testing.T) {
	answer := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "denied: password=k4n4ry-secret",
	}}
	c := &cycle{stored: &lsv1alpha1.DeployItem{}}
	if got := c.refused(answer).Error(); !strings.Contains(got, "k4n4ry") {
		t.Errorf("the configuration is empty, so there is nothing to hide: %s", got)
	}
	c.stored.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"password": "k4n4ry-secret"}`)}
	err := c.refused(answer)
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "k4n4ry") || !strings.Contains(text, "denied: password=***") {
		t.Error(text)
	}
	if !apierrors.IsForbidden(err) || !isKnownRefusal(err) || !errors.Is(err, answer) {
		t.Error("the error cannot be recognised any more")
	}
	if found, ok := errors.AsType[*writeError](fmt.Errorf("write: %w", err)); !ok || found != err {
		t.Error("it is no writeError any more")
	}
}

// TestExportErrorsAreQuiet: what refuses an export Secret may quote it.
func TestExportErrorsAreQuiet(t *testing.T) {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item", UID: "uid"}}
	quoting := func(data []byte) error {
		return fmt.Errorf("denied: {config: %s} or %s", data, base64.StdEncoding.EncodeToString(data))
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			return quoting(obj.(*corev1.Secret).Data[lsv1alpha1.DataObjectSecretDataKey])
		},
	}).Build()
	err := WriteExport(t.Context(), c, di, map[string]string{"password": "k4n4ry-secret"})
	if err == nil || !strings.HasSuffix(err.Error(), `denied: {config: {"password":"***"}} or eyJwYXNzd29yZCI6I***ifQ==`) {
		t.Errorf("got %v", err)
	}
}
