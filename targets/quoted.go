// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// hideQuoted removes a token from the body of an error response, even if the server has quoted the token in another
// form. If the body is a Status, the result is a Status with the same reason. Texts are shortened to redact.MaxText
// bytes.
func hideQuoted(token, body string) string {
	if len(token) < minSecret {
		return body
	}
	secrets := redact.New(minSecret, token)
	status := metav1.Status{}
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Kind != "Status" {
		return secrets.Redact(body)
	}
	status.Message = secrets.Redact(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			cause := &status.Details.Causes[i]
			cause.Message, cause.Field = secrets.Redact(cause.Message), secrets.Redact(cause.Field)
		}
	}
	hidden, err := json.Marshal(status)
	if err != nil {
		return secrets.Redact(body) // not expected, because the Status was decoded from JSON
	}
	return string(hidden)
}
