// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

const pem = `-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAwJq3nUu1kZp0x9Qv5r7T2mYb8cHs6dFjGkLzXoNiEaWtRyPu
Q4s8D1fVhBgMlCxJzKqIoTnYwEeRrUvPbAa5S3d7G9hX2jZ6kL0mN4bV8cQ1wErT
yUiOpAsDfGhJkLzXcVbNm1234567890qWeRtYuIoPaSdFgHjKlZxCvBnM0987654
cZk=
-----END RSA PRIVATE KEY-----
`

// canaries are values that must not appear in the result.
var canaries = map[string]string{
	"a word":        "k4n4ry-secret",
	"ampersands":    "k4n&4ry&&secret&",
	"angles":        "<k4n4ry>secret</k4n4ry>",
	"quotes":        `k4n"4ry'sec"''ret`,
	"lines":         "k4n4ry\nsecret\r\n\tand more\n",
	"backslashes":   `C:\new\k4n4ry\\x41 \u0026`,
	"UTF-8":         "pässwörd-密码-🔑-ключ",
	"no ASCII":      "密码是这个",
	"URL":           "https://me:k4n%40ry+s@host/?a=1&b=%zz&c=&lt;",
	"PEM":           pem,
	"long base64":   base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k4n4ry-secret/?\xff\xfe", 8))),
	"JSON":          `{"auths":{"r.example.com":{"auth":"azRuNHJ5OnNlY3JldA==","note":"a\nb \"c\" <d>"}}}`,
	"all at once":   "&<>\"'\\\n%41\\n&amp; k4n 密",
	"binary":        "k4n\x00\x01\xff4ry\xfe\x80secret",
	"blanks within": "k 4 n\t4  r y",
}

// quotings contains functions that write a value in other forms, in the same way as other programs. The value can be
// recovered from each of these forms.
var quotings = map[string]func(string) string{
	"plain":             func(v string) string { return v },
	"line by line":      func(v string) string { return strings.ReplaceAll(v, "\n", "\n> ") },
	"lines of comments": func(v string) string { return "# " + strings.ReplaceAll(v, "\n", "\n\t## ") },
	"words":             func(v string) string { return strings.Join(strings.Fields(v), " ") },
	"Go":                strconv.Quote,
	"Go, ASCII":         strconv.QuoteToASCII,
	"Go syntax":         func(v string) string { return fmt.Sprintf("%#v", map[string]string{"x": v}) },
	"Go bytes":          func(v string) string { return fmt.Sprint(map[string][]byte{"x": []byte(v)}) },
	"Go bytes, syntax":  func(v string) string { return fmt.Sprintf("%#v", []byte(v)) },
	"JSON":              func(v string) string { return asJSON(v) },
	"JSON, as it is": func(v string) string {
		out := strings.Builder{}
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(v)
		return out.String()
	},
	"JSON in JSON":         func(v string) string { return asJSON(asJSON(v)) },
	"JSON in JSON in JSON": func(v string) string { return asJSON(asJSON(asJSON(v))) },
	"JSON in Go":           func(v string) string { return strconv.Quote(asJSON(v)) },
	"JSON, all escaped":    escapeAll,
	"YAML":                 func(v string) string { return asYAML(map[string]any{"x": v}) },
	"YAML within": func(v string) string {
		return asYAML(map[string]any{"a": map[string]any{"b": []any{map[string]any{"x": v}}}})
	},
	"YAML in JSON":      func(v string) string { return asJSON(asYAML(map[string]any{"x": v})) },
	"YAML block":        func(v string) string { return "x: |\n      " + strings.ReplaceAll(v, "\n", "\n      ") },
	"YAML, quoted once": func(v string) string { return "'" + strings.ReplaceAll(v, "'", "''") + "'" },
	"YAML of Python":    asPython,
	"a shell":           func(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" },
	"URL":               url.QueryEscape,
	"URL path":          url.PathEscape,
	"URL in JSON":       func(v string) string { return asJSON("/?x=" + url.QueryEscape(v)) },
	"JSON in URL":       func(v string) string { return url.QueryEscape(asJSON(v)) },
	"HTML":              html.EscapeString,
	"base64":            func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64 for URLs":   func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	"base64 in lines":   func(v string) string { return inLines(base64.StdEncoding.EncodeToString([]byte(v)), 64) },
	"base64 in YAML in JSON": func(v string) string {
		return asJSON("x:\n  " + strings.ReplaceAll(inLines(base64.StdEncoding.EncodeToString([]byte(v)), 40), "\n", "\n  "))
	},
	"base64 of base64": func(v string) string {
		return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(v))))
	},
	"base64 within": func(v string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + v + "\n")) },
	"base64 of JSON": func(v string) string {
		return "data/" + base64.StdEncoding.EncodeToString([]byte(`{"x":`+asJSON(v)+`}`))
	},
	"base64 of base64 in JSON": func(v string) string {
		return base64.StdEncoding.EncodeToString([]byte(asJSON(map[string]any{"x": []byte(v)})))
	},
	"hexadecimal":             func(v string) string { return hex.EncodeToString([]byte(v)) },
	"hexadecimal, in capital": func(v string) string { return fmt.Sprintf("a%X", v) },
	"hexadecimal, apart":      func(v string) string { return fmt.Sprintf("[% x]", v) },
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
		return asJSON(value) // the conversion fails for some control characters
	}
	return string(raw)
}

// asPython quotes a character as \x followed by the code point of the character. Other programs quote the bytes of the
// character.
func asPython(v string) string {
	out := strings.Builder{}
	for _, r := range v {
		switch {
		case r < ' ' || r >= 0x7f && r < 0x100:
			fmt.Fprintf(&out, `\x%02X`, r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08X`, r)
		case r >= 0x100:
			fmt.Fprintf(&out, `\u%04X`, r)
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		default:
			out.WriteRune(r)
		}
	}
	return `"` + out.String() + `"`
}

// escapeAll returns a JSON string with an escape sequence for each character.
func escapeAll(v string) string {
	out := strings.Builder{}
	for _, unit := range utf16.Encode([]rune(v)) {
		fmt.Fprintf(&out, `\u%04x`, unit)
	}
	return `"` + out.String() + `"`
}

func inLines(text string, width int) string {
	out := []string{}
	for len(text) > width {
		out, text = append(out, text[:width]), text[width:]
	}
	return strings.Join(append(out, text), "\n")
}
