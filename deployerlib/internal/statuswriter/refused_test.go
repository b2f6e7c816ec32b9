// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestErrorsDoNotQuoteTheItem checks that errors contain no text of the item, regardless of the encoding in which a
// refusal quotes it.
func TestErrorsDoNotQuoteTheItem(t *testing.T) {
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
				item := &lsv1alpha1.DeployItem{}
				item.Spec.Configuration = &runtime.RawExtension{Raw: document}
				got := newWriteError(item, errors.New("denied: "+quoted)).Error()
				for _, part := range []string{"k4n4ry", "密码", "azRu", "NG40", "107 52 110 52"} {
					if strings.Contains(got, part) {
						t.Errorf("%q of %q", got, quoted)
					}
				}
				if !strings.HasPrefix(got, "denied: ") {
					t.Errorf("error = %q, want the prefix %q", got, "denied: ")
				}
			})
		}
	}
}

// TestRejectedWriteIsRedacted checks that the configuration of an item is not disclosed if an admission webhook quotes
// the item in an error.
func TestRejectedWriteIsRedacted(t *testing.T) {
	answer := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "denied: password=k4n4ry-secret",
	}}
	item := &lsv1alpha1.DeployItem{}
	if got := newWriteError(item, answer).Error(); !strings.Contains(got, "k4n4ry") {
		t.Errorf("the configuration is empty, so there is nothing to hide: %s", got)
	}
	item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"password": "k4n4ry-secret"}`)}
	err := newWriteError(item, answer)
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "k4n4ry") || !strings.Contains(text, "denied: password=***") {
		t.Errorf("error = %q, want a redacted password", text)
	}
	if !apierrors.IsForbidden(err) || ToResult(err).Kind != ResultRefused || !errors.Is(err, answer) {
		t.Error("the error cannot be recognised any more")
	}
	if found, ok := errors.AsType[*writeError](fmt.Errorf("write: %w", err)); !ok || found != err {
		t.Error("the error is not a writeError any more")
	}
}
