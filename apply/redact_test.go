// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

const pemKey = `-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAk4n4ryu1kZp0x9Qv5r7T2mYb8cHs6dFjGkLzXoNiEaWtRyPu
Q4s8D1fVhBgMlCxJzKqIoTnYwEeRrk4n4ryS3d7G9hX2jZ6kL0mN4bV8cQ1wErTn
-----END RSA PRIVATE KEY-----
`

// canaries are values of Secrets. An error could also quote only a part of a value, so each part contains the text
// k4n4ry.
var canaries = map[string]string{
	"ampersands": "k4n4ry&<k4n4ry>&k4n4ry", "quotes": `k4n4ry"k4n4ry'k4n4ry`, "lines": "k4n4ry\n  k4n4ry\r\nk4n4ry\n",
	"UTF-8": "k4n4ry-密码-k4n4ry-ö", "PEM": pemKey, "backslashes": `C:\k4n4ry\\u0026k4n4ry`,
	"base64": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("?k4n4ry\xff", 9))),
}

// quotings contains functions that quote a value in the forms that servers use.
var quotings = map[string]func(string) string{
	"plain":        func(v string) string { return v },
	"words":        func(v string) string { return strings.Join(strings.Fields(v), " ") },
	"Go":           func(v string) string { return fmt.Sprintf("%q", v) },
	"JSON":         func(v string) string { return asJSON(v) },
	"JSON in JSON": func(v string) string { return asJSON(asJSON(asJSON(v))) },
	"YAML":         func(v string) string { return asYAML(map[string]any{"a": map[string]any{"x": v}}) },
	"YAML in JSON": func(v string) string { return asJSON(asYAML(map[string]any{"a": map[string]any{"x": v}})) },
	"base64":       func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"basic auth":   func(v string) string { return base64.URLEncoding.EncodeToString([]byte("me:" + v)) },
	"URL":          url.QueryEscape,
	"HTML":         html.EscapeString,
	"bytes":        func(v string) string { return fmt.Sprintf("%d", []byte(v)) },
}

func asJSON(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func asYAML(value any) string {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// withSecret returns a Session that has claimed a Secret with the given values.
func withSecret(t *testing.T, values map[string]any, events func(Event)) *Session {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	s := New(nil, mapper, Options{Events: events}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
	if err := s.Claim(t.Context(), manifest("Secret", "s", map[string]any{"data": values})); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSecretsAreRedacted checks that no error or event contains a value of a Secret. It covers all kinds of answers,
// with each function in `quotings`.
func TestSecretsAreRedacted(t *testing.T) {
	for canary, value := range canaries {
		for quoting, quote := range quotings {
			t.Run(canary+" as "+quoting+" [F8]", func(t *testing.T) {
				shown := []string{}
				s := withSecret(t, map[string]any{"x": base64.StdEncoding.EncodeToString([]byte(value))}, func(e Event) {
					shown = append(shown, e.Message)
				})
				said := "denied: the value " + quote(value) + " is wrong"
				cause := &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: quote(value), Message: said}}}
				for _, ref := range []Ref{deployment, secret} {
					for _, err := range []error{
						newAnswer(403, said, nil), newAnswer(409, said, cause), newAnswer(422, said, cause), errors.New(said),
						newAnswer(500, "failed to create typed patch object (a/b; v1, Kind=X): .data.x: "+said, nil),
					} {
						shown = append(shown, s.run.results.updateWaiting(ref, err, true).Error())
					}
				}
				_ = s.run.recordResult(t.Context(), decide.Step{Facts: decide.Facts{Events: []Event{{Ref: deployment, Message: said}}}})
				for _, c := range fieldChanges(deployment, fields.Diff(newBody(nil).Object, newBody(said).Object), s.run.hide) {
					shown = append(shown, c.New)
				}
				for _, text := range shown {
					if part := findLeak(text, quote(value)); part != "" {
						t.Errorf("%q shows %q of %q", text, part, quote(value))
					}
				}
				if len(shown) != 12 || !strings.Contains(shown[0], "denied: the value ") {
					t.Errorf("too little is shown: %q", shown)
				}
			})
		}
	}
}

func newBody(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
}

// findLeak returns a part of the quoted value that the text contains, or "" if the text contains none.
func findLeak(text, quoted string) string {
	const enough = 8
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' && r < 0x80 {
				return -1
			}
			return r
		}, s)
	}
	text, quoted = letters(text), letters(quoted)
	for i := 0; i+enough <= len(quoted); i++ {
		if part := quoted[i : i+enough]; strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// TestManySecretsAndLongErrors covers a failing run of an item with as many Secrets as possible. Such a run once took
// half a minute.
func TestManySecretsAndLongErrors(t *testing.T) {
	t.Run("many secret values are redacted from a long error in a short time [F7]", func(t *testing.T) {
		values := map[string]any{}
		for i := range 40_000 {
			values[fmt.Sprint(i)] = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "value-%d", i))
		}
		start := time.Now()
		s := withSecret(t, values, nil)
		got := s.run.results.updateWaiting(secret, newAnswer(422, `"`+strings.Repeat(`it is value-39999\n`, 1<<20/18), nil), true)
		if len(got.Message) > maxTextLength || strings.Contains(got.Message, "39999") {
			t.Error(got)
		}
		if took := time.Since(start); took > testtime.ScaleTimeout(5*time.Second) {
			t.Errorf("took %s", took)
		}
	})
	t.Run("the text is withheld if the secret values are too long [F7]", func(t *testing.T) {
		s := withSecret(t, map[string]any{"x": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a long value", 400_000)))}, nil)
		if got := s.run.results.updateWaiting(deployment, newAnswer(403, "denied: anything", nil), true); strings.Contains(got.Message, "anything") || got.Message == "" {
			t.Error(got)
		}
	})
}
