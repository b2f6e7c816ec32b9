// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/internal/redact"
)

const (
	redacted = "[redacted]"
	// minSecret is the minimum length of a token that is removed from texts. A shorter token is not removed, because
	// it is too short to be secret and may be part of ordinary words.
	minSecret = 8
)

// redactToken removes a token from a text.
func redactToken(token, text string) string {
	if len(token) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, token, redacted)
}

// redactResponse removes a token from the body of an error response, even if the server has quoted the token in another
// form. If the body is a Status, the result is a Status with the same reason. Texts are shortened to redact.MaxText
// bytes.
func redactResponse(token string, body []byte) []byte {
	if len(token) < minSecret {
		return body
	}
	text := redactToken(token, string(body))
	secrets := redact.New(minSecret, token)
	status := metav1.Status{}
	if err := json.Unmarshal([]byte(text), &status); err != nil || status.Kind != "Status" {
		return []byte(secrets.Redact(text))
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
		return []byte(secrets.Redact(text)) // not expected, because the Status was decoded from JSON
	}
	return hidden
}
