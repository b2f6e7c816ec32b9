// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoBlocks(t *testing.T) {
	doc := "text\n```go\na()\n\nb()\n```\n```sh\nmake\n```\n```go\nc()\n```\n"
	want := []Block{{Line: 3, Code: []string{"a()", "", "b()"}}, {Line: 11, Code: []string{"c()"}}}
	if diff := cmp.Diff(want, FindGoBlocks(doc)); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestBlocks(t *testing.T) {
	doc := "```go\na()\n```\n```yaml\nb: c\n```\n```\nyaml\n```\n"
	want := []Block{{Line: 5, Code: []string{"b: c"}}}
	if diff := cmp.Diff(want, FindBlocks(doc, "yaml")); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestCopied(t *testing.T) {
	source := "func f() {\n\tif a {\n\t\tb()\n\n\t\tc()\n\t}\n}\nyaml:\n  a:\n    b: c\n"
	for name, tc := range map[string]struct {
		code string
		want bool
	}{
		"same indentation":    {"\tif a {\n\t\tb()", true},
		"less indentation":    {"if a {\n\tb()\n\n\tc()\n}", true},
		"another indentation": {"if a {\nb()", false},
		"another line":        {"if a {\n\td()", false},
		"part of a line":      {"a {", false},
		"beyond the end":      {"    b: c\n\n\n", false},
		"spaces":              {"a:\n  b: c", true},
		"different spaces":    {"a:\n b: c", false},
		"nothing":             {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			var code []string
			if tc.code != "" {
				code = strings.Split(tc.code, "\n")
			}
			if got := IsCopied(code, source); got != tc.want {
				t.Errorf("Copied = %t, want %t", got, tc.want)
			}
		})
	}
}
