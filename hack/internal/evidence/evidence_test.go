// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestCommittedEvidenceIsUpToDate checks that the list of promises is well-formed, and that the committed evidence
// matches it. It does not need the reports of a test run.
func TestCommittedEvidenceIsUpToDate(t *testing.T) {
	doc, err := os.ReadFile(root + "/docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	promises, err := ParsePromises(doc)
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

func TestReadReports(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	if _, _, err := ReadReports(root, dir); err == nil {
		t.Error("got no error for a directory without events")
	}
	event := func(action, pkg, test string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":%q,\"Test\":%q}\n", action, module+pkg, test)
	}
	write := func(path string, age time.Duration, text ...string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(text, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "a.json"), time.Minute, event("pass", "old", "TestA [L901]"), event("pass", "old", ""),
		event("pass", "kept", "TestB [L902]"), event("pass", "kept", ""))
	write(filepath.Join(dir, "b.json"), time.Hour, event("pass", "kept", "TestC [L903]"), event("pass", "kept", ""),
		event("pass", "bad", "TestD [L904]"), event("fail", "bad", "TestE [L905]"), event("fail", "bad", ""),
		event("pass", "suite", "TestSuite"), event("skip", "suite", "TestF [L906]"), event("pass", "suite", ""), event("skip", "none", ""))
	spec := `{"ContainerHierarchyTexts":["flow"],"LeafNodeType":"It","LeafNodeText":%q,"State":%q}`
	write(filepath.Join(root, "suite", GinkgoReport), 0, "[{\"SpecReports\":[", fmt.Sprintf(spec, "ends [L907]", "passed"), ",",
		fmt.Sprintf(spec, "waits [L908]", "pending"), ",", fmt.Sprintf(spec, "breaks [L909]", "failed"), "]}]")
	got, skipped, err := ReadReports(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("names of tests and specs that ran and passed are evidence, other strings are not [F51]", func(t *testing.T) {
		want := []Report{
			{"kept", []Proof{{"L902", "kept", "TestB [L902]"}}},
			{"old", []Proof{{"L901", "old", "TestA [L901]"}}},
			{"suite", []Proof{{"L907", "suite", "flow ends"}}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
	t.Run("tests and specs that were skipped are reported [F51]", func(t *testing.T) {
		if diff := cmp.Diff([]string{module + "suite: TestF [L906]", module + "suite: flow waits [L908]"}, skipped); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
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
	t.Run("a run of one package does not change the proofs of others [F51]", func(t *testing.T) {
		got := Update(old, []Report{{Package: "a", Proofs: []Proof{{"L11", "a", "TestD"}}}})
		if diff := cmp.Diff([]Proof{{"L9", "b", "TestB"}, {"L11", "a", "TestD"}}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("a package that no longer reports a proof has none [F51]", func(t *testing.T) {
		if diff := cmp.Diff(old[1:2], Update(old, []Report{{Package: "a"}})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestParsePromises(t *testing.T) {
	got, err := ParsePromises([]byte("# Title\n\n| ID | Promise |\n|---|---|\n| L901 | first |\n| Lx902 | second |\n\nEnd.\n"))
	if diff := cmp.Diff([]string{"L901", "Lx902"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, tc := range map[string]struct{ doc, want string }{
		"a row with too many cells": {"| L901 | a | b |", "line 1 does not have the form"},
		"a row with too few cells":  {"text\n| L901 |", "line 2 does not have the form"},
		"an ID that occurs twice":   {"| L901 | a |\n| L901 | b |", "line 2: L901 is listed twice"},
		"a text without a row":      {"text", "no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParsePromises([]byte(tc.doc)); err == nil || !strings.Contains(err.Error(), tc.want) {
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
