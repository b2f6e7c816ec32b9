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
)

// Echo answers with an error that quotes what the client sent: its token and all texts of the body, those in
// base64 also decoded. quote says how; see Quotings.
func Echo(code int, quote func(string) string) Behaviour {
	return answer(func(w http.ResponseWriter, r *http.Request) {
		texts := map[string]bool{}
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			texts[token] = true
		}
		var body any
		if text, err := io.ReadAll(io.LimitReader(r.Body, 8<<20)); err == nil && json.Unmarshal(text, &body) == nil {
			collect(body, texts)
		}
		var message strings.Builder
		for _, text := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&message, "admission webhook denied the request: %s is not allowed\n", quote(text))
		}
		WriteStatus(w, code, "Forbidden", message.String())
	})
}

// collect finds all texts.
func collect(value any, texts map[string]bool) {
	switch v := value.(type) {
	case string:
		texts[v] = true
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil && len(plain) > 0 {
			texts[string(plain)] = true
		}
	case []any:
		for _, item := range v {
			collect(item, texts)
		}
	case map[string]any:
		for _, item := range v {
			collect(item, texts)
		}
	}
}

// Quotings returns the ways in which servers and webhooks quote a text, by name.
func Quotings() map[string]func(string) string {
	return map[string]func(string) string{
		"plain":               func(s string) string { return s },
		"single quotes":       func(s string) string { return "'" + s + "'" },
		"Go":                  strconv.Quote,
		"Go, ASCII":           strconv.QuoteToASCII,
		"JSON":                func(s string) string { return jsonText(s, true) },
		"JSON without HTML":   func(s string) string { return jsonText(s, false) },
		"JSON in JSON":        func(s string) string { return jsonText(jsonText(s, true), true) },
		"JSON in Go":          func(s string) string { return strconv.Quote(jsonText(s, true)) },
		"YAML block":          func(s string) string { return "|\n" + indented(s, "  ") },
		"YAML block, deep":    func(s string) string { return "|-\n" + indented(s, "        ") },
		"YAML folded":         func(s string) string { return ">\n" + indented(strings.ReplaceAll(s, "\n", "\n\n"), "  ") },
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

func jsonText(s string, escapeHTML bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	if encoder.Encode(s) != nil {
		return s // texts always can
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func indented(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

// ForeignUIDs changes the UID of each object that the server behind it answers with.
func ForeignUIDs(uid string) Behaviour {
	return Rewrite(func(body []byte) []byte {
		var tree any
		if json.Unmarshal(body, &tree) != nil {
			return body
		}
		replaceUIDs(tree, uid)
		changed, err := json.Marshal(tree)
		if err != nil {
			return body // it came as JSON
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
