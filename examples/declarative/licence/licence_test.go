// SPDX-License-Identifier: Apache-2.0

package licence_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
	"github.com/deployerkit/deployerkit/examples/declarative/licence"
)

// serve starts a licence service and returns its URL. The service knows only the customer acme-12, and fails for the
// customer broken-1.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/licences/acme-12":
			_, _ = w.Write([]byte("key of acme"))
		case "/licences/broken-1":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLicence(t *testing.T) {
	item := declarativetest.NewItem(t, "demo", "acme", licence.Config{Customer: "acme-12"})
	handler := declarative.FromFailable(licence.New(serve(t)))
	plan, err := declarativetest.Run(t.Context(), handler, licence.Options, item)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "acme-licence", "namespace": "demo"},
		"stringData": map[string]any{"customer": "acme-12", "licence": "key of acme"},
	}
	if diff := cmp.Diff(want, plan.Object("Secret demo/acme-licence")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again, err := declarativetest.Run(t.Context(), handler, licence.Options, item, plan.Observed...)
	if err != nil || again.ListSteps() != nil {
		t.Errorf("a second call: %v, %v", again, err)
	}
}

func TestErrorsReachTheStatus(t *testing.T) {
	handler := licence.New(serve(t))
	for name, tc := range map[string]struct {
		customer, want string
		ends           bool
	}{
		"an error of Validate [R9, R24, R44]":         {"ACME", `spec.config.customer: "ACME" is not a customer`, true},
		"an error of SyncChildren [R24, R44]":         {"broken-1", "the licence service answers 503", false},
		"an error of an unknown customer [R24]":       {"unknown-1", `spec.config.customer: the licence service does not know "unknown-1"`, true},
		"an error of a customer that is a path [R24]": {"../acme-12", "is not a customer", true},
	} {
		t.Run(name, func(t *testing.T) {
			item := declarativetest.NewItem(t, "demo", "acme", licence.Config{Customer: tc.customer})
			secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"customer": []byte("acme-12")}}
			secret.Name = "acme-licence"
			req := request(t, item, secret)
			response, err := declarative.FromFailable(handler).Sync(t.Context(), req)
			if err == nil || !strings.Contains(err.Error(), tc.want) || contract.HasUnrecoverableCode(contract.ErrorCodes(err)) != tc.ends {
				t.Errorf("error %v, want %q, which ends the job: %t", err, tc.want, tc.ends)
			}
			status, _ := response.Status.(licence.Status)
			if !strings.Contains(status.Error, tc.want) || status.Customer != "acme-12" {
				t.Errorf("status is %+v, want the error and the customer of the existing licence", status)
			}
		})
	}
}

func TestServiceDown(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	item := declarativetest.NewItem(t, "demo", "acme", licence.Config{Customer: "acme-12"})
	_, err := declarativetest.Run(t.Context(), declarative.FromFailable(licence.New(server.URL)), licence.Options, item)
	if err == nil || !strings.Contains(err.Error(), "ask the licence service") || contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
		t.Errorf("got %v, want an error that can be retried", err)
	}
}
