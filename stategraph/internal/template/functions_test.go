// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
)

// TestBoundedFunctionsAgreeWithSprig checks that the bounded functions return the same results as the sprig functions
// that they replace.
func TestBoundedFunctionsAgreeWithSprig(t *testing.T) {
	for call, want := range map[string]string{
		`join "-" (list 1 "b" nil true)`:             "1-b-true",
		`replace "a" "bb" "aca"`:                     "bbcbb",
		`wrapWith 2 "|" "abcd e"`:                    "ab|cd|e",
		`regexReplaceAll "a(.)" "abac" "${1}$0"`:     "babcac",
		`mustRegexReplaceAll "a(.)" "abac" "$1"`:     "bc",
		`regexReplaceAllLiteral "a." "abac" "$0"`:    "$0$0",
		`mustRegexReplaceAllLiteral "a." "abac" "$"`: "$$",
	} {
		t.Run(call, func(t *testing.T) {
			var out strings.Builder
			err := texttemplate.Must(texttemplate.New("").Funcs(NewFuncMap()).Parse("{{"+call+"}}")).Execute(&out, nil)
			if err != nil || out.String() != want {
				t.Errorf("want %q, got %q, %v", want, out.String(), err)
			}
		})
	}
}

func TestFunctionsAreHermetic(t *testing.T) {
	funcs := NewFuncMap()
	for name := range funcs {
		for _, bad := range []string{"rand", "gen", "crypt", "AES", "htpasswd", "derive", "uuid", "env", "now", "Date", "date", "shuffle", "getHost", "buildCustom"} {
			if strings.Contains(name, bad) && !slices.Contains([]string{"regexQuoteMeta", "mustRegexMatch"}, name) {
				t.Errorf("%s gives something else each time, or depends on the machine", name)
			}
		}
	}
	if len(funcs) < 150 {
		t.Errorf("only %d functions", len(funcs))
	}
}

func TestUntilStep(t *testing.T) {
	for _, test := range []struct {
		start, stop, step int
		want              string
	}{
		{0, 3, 1, "[0 1 2]"}, {3, 0, -1, "[3 2 1]"}, {0, 3, -1, "[]"}, {0, 3, 0, "[]"}, {1, 6, 2, "[1 3 5]"},
	} {
		if got, err := untilStep(test.start, test.stop, test.step); fmt.Sprint(got) != test.want || err != nil {
			t.Errorf("%v: %v, %v", test, got, err)
		}
	}
}
