// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

// TestErrorsHideQuotedToken checks that an error does not contain the token, in whatever form the server has quoted it.
// It also checks that the reason of the error stays the same.
func TestErrorsHideQuotedToken(t *testing.T) {
	const token = "k4n4ry.of-the/token+UxYzMqvTsa=="
	for name, quote := range hostile.QuoteFuncs() {
		t.Run("removes a token that is quoted as "+name+" [F8]", func(t *testing.T) {
			cause := map[string]any{"reason": "FieldValueInvalid", "field": quote(token), "message": "is " + quote(token)}
			for form, answer := range map[string]hostile.Behaviour{
				"message": hostile.Echo(http.StatusForbidden, quote),
				"cause": newResponse(http.StatusForbidden, map[string]any{
					"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "denied",
					"details": map[string]any{"name": "cm", "causes": []any{cause}},
				}),
				"text": func(http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						http.Error(w, "denied "+quote(token), http.StatusForbidden)
					})
				},
			} {
				s := newHostileServer(t, hostile.When(hostile.IsWrite, answer))
				c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", string(s.Kubeconfig(token))))
				err := c.Create(t.Context(), newNamedConfigMap("cm"))
				status, ok := errors.AsType[*apierrors.StatusError](err)
				if !ok || !apierrors.IsForbidden(err) {
					t.Fatalf("%s: got %v, want an error of the API server with its reason", form, err)
				}
				shown := fmt.Sprintf("%v %+v", err, status.Status())
				if strings.Contains(shown, quote(token)) || !strings.Contains(shown, "denied") {
					t.Errorf("%s: %s", form, shown)
				}
			}
		})
	}
}

// newResponse returns a Behaviour that responds with the given code and a JSON body.
func newResponse(code int, body any) hostile.Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hostile.WriteJSON(w, code, body) })
	}
}
