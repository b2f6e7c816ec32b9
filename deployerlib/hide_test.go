// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"encoding/base64"
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
	document := fmt.Appendf(nil, `{"manifests": [{"data": {"x": %q, "short": "of"}, "list": [%q]}]}`, encoded, canary+"-2")
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"plain":    {"what is encoded in the document is known decoded", "it is " + canary, "it is ***"},
		"encoded":  {"as it stands there", "it is " + encoded + "!", "it is ***!"},
		"quoted":   {"with the quotes of Go", fmt.Sprintf("it is %q", canary+"-2"), `it is "***"`},
		"in a map": {"as Go prints it", fmt.Sprint(map[string]string{"x": canary}), "map[x:***]"},
		"whole":    {"the whole document", "object " + string(document), "object ***"},
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
	if err == nil || !strings.HasSuffix(err.Error(), "denied: {config: ***} or ***") {
		t.Errorf("got %v", err)
	}
}
