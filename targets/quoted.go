// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// hideQuoted removes a token from the body of an error, however the server quoted it. The body stays an error with the
// same reason, and its texts are cut to redact.MaxText.
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
		return secrets.Redact(body) // it was received as JSON
	}
	return string(hidden)
}
