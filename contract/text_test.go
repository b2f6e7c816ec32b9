// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"

	"github.com/deployerkit/deployerkit/contract"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"empty":                            {"", 10, ""},
		"plain":                            {"plain text", 100, "plain text"},
		"lines":                            {"a\nb\r\nc", 100, "a; b; c"},
		"lines after a colon":              {"errors:\n  one,\n  two", 100, "errors: one, two"},
		"tabs and escapes":                 {"a\t\x1b[31mb\x00", 100, "a [31mb"},
		"bidi controls [F12]":              {"a\u202eb\u2066c\u061cd\u200f", 100, `a\u202eb\u2066c\u061cd\u200f`},
		"leading and trailing white space": {"\n  a \n", 100, "a"},
		"invalid UTF-8":                    {"a\xc3", 100, "a\uFFFD"},
		"text of the maximum length":       {"0123456789", 10, "0123456789"},
		"cut with a count":                 {strings.Repeat("x", 100), 40, strings.Repeat("x", 21) + "… (79 bytes cut)"},
		"no room for a count":              {"0123456789", 4, "0123"},
		"limit within a character":         {"ääää", 3, "ä"},
		"no limit":                         {strings.Repeat("x", 5000), 0, strings.Repeat("x", 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.OneLine(tc.in, tc.limit); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb", 10)
	f.Add("ä\xff\u2028", 2)
	f.Add(strings.Repeat(";", 300), 94)
	f.Add(strings.Repeat("ä", 300), 94)
	f.Add(strings.Repeat("ä", 300), 95)
	f.Add("\xff\xe2\x800\xef", -2)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := contract.OneLine(s, limit)
		if limit > 0 && len(got) > limit {
			t.Errorf("%d bytes, limit %d", len(got), limit)
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("not one line of text: %q", got)
		}
		if again := contract.OneLine(got, limit); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	})
}

// FuzzNewError converts trees of errors. For every text in the errors, the result must be one short line and contain
// every code of the tree once.
func FuzzNewError(f *testing.F) {
	f.Add("get Context ns/a", "not found", "Reconcile\n", "", "ERR_TIMEOUT", byte(0))
	f.Add("a\x00\u2028b", strings.Repeat("ä\r\n", 2000), "op", "reason", "", byte(0xff))
	f.Add("%!s(nil)", "Op:  - Reason:  - Message: ", "Op: ", "\xff", "a\nb", byte(0x5a))
	f.Fuzz(func(t *testing.T, outer, inner, operation, reason, code string, shape byte) {
		var err error = &contract.CodedError{Operation: operation, Reason: reason, Message: inner, Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorCode(code)}}
		for bit := range 7 {
			switch shape >> bit & 3 {
			case 0:
				err = fmt.Errorf("%s: %w", outer, err)
			case 1:
				err = errors.Join(errors.New(inner), err, (*contract.CodedError)(nil))
			case 2:
				err = &contract.CodedError{Message: outer, Err: err, Codes: contract.ErrorCodes(err)}
			case 3:
				err = lserrors.NewWrappedError(err, operation, reason, outer, lsv1alpha1.ErrorTimeout)
			}
		}
		got := contract.NewError(err, "Op", "Reason", epoch)
		for text, limit := range map[string]int{got.Message: 1024, got.Operation: 128, got.Reason: 128} {
			if text != contract.OneLine(text, limit) {
				t.Errorf("not one line of at most %d bytes: %q", limit, text)
			}
		}
		if !slices.Contains(got.Codes, lsv1alpha1.ErrorCode(code)) || len(slices.Compact(slices.Sorted(slices.Values(got.Codes)))) != len(got.Codes) {
			t.Errorf("codes %q", got.Codes)
		}
	})
}

// TestOneLineKeepsCharactersWhole checks that OneLine never cuts a text within a character, whatever the limit is.
func TestOneLineKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aäß語😀", 50)
	for limit := 1; limit < len(long); limit++ {
		if got := contract.OneLine(long, limit); len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}
