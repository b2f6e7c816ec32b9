// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	tests := Tests{
		"L901": {{"a_test.go", "TestA"}, {"a_test.go", "TestB"}, {"b_test.go", "a | b"}},
		"L903": {{"a.go", ""}, {"b_test.go", ""}, {"b_test.go", "TestB"}},
		"L999": {{"c_test.go", "TestC"}},
	}
	doc := "# Title\n\n| ID | Promise | Proved by |\n|---|---|---|\n| L901 | first | old |\n| Lx902 | second |  |\n| L903 | third |  |\n\nEnd.\n"
	want := "# Title\n\n| ID | Promise | Proved by |\n|---|---|---|\n" +
		"| L901 | first | `a_test.go` › TestA, TestB; `b_test.go` › a / b |\n| Lx902 | second | **none** |\n" +
		"| L903 | third | `a.go`; `b_test.go` › TestB |\n\nEnd.\n"
	got, missing, err := Fill([]byte(doc), tests)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Lx902"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	again, _, err := Fill(got, tests)
	if err != nil || string(again) != string(got) {
		t.Errorf("a filled document changes when filled again: %v", err)
	}
}

func TestFillFaults(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"a row with too many cells": {"| L901 | a | b | c |", "line 1 is not of the shape"},
		"a row with too few cells":  {"text\n| L901 | a |", "line 2 is not of the shape"},
		"an ID twice":               {"| L901 | a | |\n| L901 | b | |", "line 2: L901 stands twice"},
		"no row":                    {"text", "no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Fill([]byte(tc.doc), nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}
