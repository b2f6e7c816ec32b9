// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestCommitted checks that the list of promises is well-formed, and that the committed evidence matches it. It does
// not need the reports of a test run.
func TestCommitted(t *testing.T) {
	doc, err := os.ReadFile(root + "/docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	promises, err := Promises(doc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(root + "/docs/evidence.txt")
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Check(promises, proofs) {
		t.Error(fault)
	}
	if diff := cmp.Diff(string(Format(proofs)), string(text)); diff != "" {
		t.Errorf("evidence.txt differs from the output of Format (-want +got):\n%s", diff)
	}
}

func TestNewReport(t *testing.T) {
	got := NewReport(module+"pkg", []string{
		"TestA", "TestA/keeps_fields_[L901]", "TestA/keeps_fields_[L901]/of_maps", "TestA/two_[L902,_Lx903]_[C904]", "TestA/none_[l905]_[H-31]",
	}, [][]string{
		{"the flow [L906]", "a job", "ends  once [L907, L908]"}, {"the flow [L906]", "a job", "starts"},
	})
	want := Report{Package: "pkg", Proofs: []Proof{
		{"C904", "pkg", "TestA"},
		{"L901", "pkg", "TestA"},
		{"L902", "pkg", "TestA"},
		{"L906", "pkg", "the flow"},
		{"L907", "pkg", "the flow a job ends once"},
		{"L908", "pkg", "the flow a job ends once"},
		{"Lx903", "pkg", "TestA"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestReports(t *testing.T) {
	dir := t.TempDir()
	if _, err := Collect(dir); err == nil {
		t.Error("got no error for a directory without reports")
	}
	a, b := Report{"a/b", []Proof{{"L901", "a/b", "TestA/x"}}}, Report{"c", nil}
	for _, r := range []Report{{"c", []Proof{{"L902", "c", "TestC"}}}, a, b} {
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Collect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Report{a, b}, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestFile(t *testing.T) {
	proofs := []Proof{{"L10", "a", "TestA/x y"}, {"L9", "b", "TestB"}, {"L9", "a", "TestC"}, {"L9", "a", "TestC"}, {"C11", "c", "a spec"}}
	text := head + "C11\n\tc a spec\nL9\n\ta TestC\n\tb TestB\nL10\n\ta TestA/x y\n"
	if diff := cmp.Diff(text, string(Format(proofs))); diff != "" {
		t.Errorf("Format (-want +got):\n%s", diff)
	}
	got, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Proof{{"C11", "c", "a spec"}, {"L9", "a", "TestC"}, {"L9", "b", "TestB"}, {"L10", "a", "TestA/x y"}}, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"\ta TestA\n", "L9\n\tTestA\n"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q): got no error", bad)
		}
	}
}

func TestUpdate(t *testing.T) {
	old := []Proof{{"L9", "a", "TestA"}, {"L9", "b", "TestB"}, {"L10", "a", "TestC"}}
	t.Run("a run of one package changes the proofs of no other [F51]", func(t *testing.T) {
		got := Update(old, []Report{{Package: "a", Proofs: []Proof{{"L11", "a", "TestD"}}}})
		if diff := cmp.Diff([]Proof{{"L9", "b", "TestB"}, {"L11", "a", "TestD"}}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("a package that reports no proof any more has none [F51]", func(t *testing.T) {
		if diff := cmp.Diff(old[1:2], Update(old, []Report{{Package: "a"}})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestPromises(t *testing.T) {
	got, err := Promises([]byte("# Title\n\n| ID | Promise |\n|---|---|\n| L901 | first |\n| Lx902 | second |\n\nEnd.\n"))
	if diff := cmp.Diff([]string{"L901", "Lx902"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, tc := range map[string]struct{ doc, want string }{
		"a row with too many cells": {"| L901 | a | b |", "line 1 does not have the form"},
		"a row with too few cells":  {"text\n| L901 |", "line 2 does not have the form"},
		"an ID twice":               {"| L901 | a |\n| L901 | b |", "line 2: L901 is listed twice"},
		"no row":                    {"text", "no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Promises([]byte(tc.doc)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		promises []string
		proofs   []Proof
		want     []string
	}{
		"each promise has a proof": {[]string{"L1", "L2"}, []Proof{{"L1", "a", "TestA"}, {"L2", "a", "TestA"}}, nil},
		"a promise without a test that ran fails [F51]": {
			[]string{"L1", "L2"}, []Proof{{"L2", "a", "TestA"}}, []string{"no test with [L1] in its name ran and passed"},
		},
		"an ID that is not listed fails [F51]": {
			[]string{"L2"},
			[]Proof{{"L1", "a", "TestB"}, {"L2", "a", "TestA"}},
			[]string{"TestB in a has an ID in its name that docs/behaviours.md does not list: L1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Check(tc.promises, tc.proofs)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
