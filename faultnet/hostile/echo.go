// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Echo responds with an error that quotes strings in the request: the strings in the body, the decoded forms of base64
// strings in the body, and the token. The strings in the fields data and stringData come first. The function `quote`
// converts each string to the form in which the error contains it. QuoteFuncs returns such functions.
func Echo(code int, quote func(string) string) Behaviour {
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		texts := newSentTexts()
		texts.record(r)
		WriteStatus(w, code, "Forbidden", texts.formatMessage(quote))
	})
}

// EchoLater passes requests to the next handler and records their strings. To a matching request, it responds with an
// error instead. The error quotes strings in this request, and in earlier requests for objects with the same name. For
// example, EchoLater can simulate a webhook for ConfigMaps that quotes the values of a Secret. For the function
// `quote`, see Echo.
func EchoLater(match Match, code int, quote func(string) string) Behaviour {
	var mu sync.Mutex
	sent := map[string]*sentTexts{} // by the name of the object
	note := func(r *http.Request) string {
		mu.Lock()
		defer mu.Unlock()
		name := parsePath(r.URL.Path).name
		if sent[name] == nil {
			sent[name] = newSentTexts()
		}
		sent[name].record(r)
		return sent[name].formatMessage(quote)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			message := note(r)
			if match(r) {
				WriteStatus(w, code, "Forbidden", message)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// sentTexts contains the strings that a client has sent. The values of Secrets and ConfigMaps are in `values`, and all
// other strings are in `others`.
type sentTexts struct{ values, others map[string]bool }

func newSentTexts() *sentTexts {
	return &sentTexts{values: map[string]bool{}, others: map[string]bool{}}
}

// record adds the token and the strings in the body of a request. The body can still be read afterwards.
func (s *sentTexts) record(r *http.Request) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		s.others[token] = true
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	r.Body = io.NopCloser(bytes.NewReader(text))
	body := map[string]any{}
	if err != nil || json.Unmarshal(text, &body) != nil {
		return
	}
	for key, value := range body {
		if key == "data" || key == "stringData" {
			addStrings(value, s.values)
			continue
		}
		addStrings(value, s.others)
	}
}

// formatMessage returns an error message that quotes the collected strings.
func (s *sentTexts) formatMessage(quote func(string) string) string {
	var message strings.Builder
	for _, texts := range []map[string]bool{s.values, s.others} {
		for _, text := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&message, "admission webhook denied the request: %s is not allowed\n", quote(text))
		}
	}
	return message.String()
}

// addStrings adds all strings in a JSON value to `texts`.
func addStrings(value any, texts map[string]bool) {
	switch v := value.(type) {
	case string:
		texts[v] = true
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil && len(plain) > 0 {
			texts[string(plain)] = true
		}
	case []any:
		for _, item := range v {
			addStrings(item, texts)
		}
	case map[string]any:
		for _, item := range v {
			addStrings(item, texts)
		}
	}
}

// QuoteFuncs returns functions that quote a string in the same way as real servers and webhooks, for example in
// quotation marks or as JSON. The keys are names for tests.
func QuoteFuncs() map[string]func(string) string {
	return map[string]func(string) string{
		"plain":               func(s string) string { return s },
		"single quotes":       func(s string) string { return "'" + s + "'" },
		"Go":                  strconv.Quote,
		"Go, ASCII":           strconv.QuoteToASCII,
		"JSON":                func(s string) string { return encodeString(s, true) },
		"JSON without HTML":   func(s string) string { return encodeString(s, false) },
		"JSON in JSON":        func(s string) string { return encodeString(encodeString(s, true), true) },
		"JSON in Go":          func(s string) string { return strconv.Quote(encodeString(s, true)) },
		"YAML block":          func(s string) string { return "|\n" + indentLines(s, "  ") },
		"YAML block, deep":    func(s string) string { return "|-\n" + indentLines(s, "        ") },
		"YAML folded":         func(s string) string { return ">\n" + indentLines(strings.ReplaceAll(s, "\n", "\n\n"), "  ") },
		"YAML single quotes":  func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
		"spaces for lines":    func(s string) string { return strings.ReplaceAll(s, "\n", " ") },
		"one line":            func(s string) string { return strings.Join(strings.Fields(s), " ") },
		"line by line":        func(s string) string { return strings.ReplaceAll(s, "\n", "\n> ") },
		"base64":              func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 for URLs":     func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"hexadecimal":         func(s string) string { return hex.EncodeToString([]byte(s)) },
		"URL":                 url.QueryEscape,
		"HTML":                html.EscapeString,
		"bytes, as Go prints": func(s string) string { return fmt.Sprintf("%d", []byte(s)) },
		"a struct, in Go":     func(s string) string { return fmt.Sprintf("%#v", struct{ Value string }{s}) },
	}
}

func encodeString(s string, escapeHTML bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	if encoder.Encode(s) != nil {
		return s // strings can always be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func indentLines(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

// ReplaceUIDs replaces the UID of each object in responses of the next handler.
func ReplaceUIDs(uid string) Behaviour {
	return Rewrite(func(body []byte) []byte {
		var tree any
		if json.Unmarshal(body, &tree) != nil {
			return body
		}
		replaceUIDs(tree, uid)
		changed, err := json.Marshal(tree)
		if err != nil {
			return body // the body was received as JSON, so it can be encoded
		}
		return changed
	})
}

func replaceUIDs(value any, uid string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			replaceUIDs(item, uid)
		}
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok && meta["uid"] != nil {
			meta["uid"] = uid
		}
		for _, item := range v {
			replaceUIDs(item, uid)
		}
	}
}
