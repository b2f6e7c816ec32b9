// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the path of the repository, relative to this package.
const root = "../.."

// core lists packages that must have at least eight mutants each. The name of a mutant begins with the name of its
// package.
var core = []string{"contract", "extension", "patch", "apply", "stategraph"}

// TestMutants checks that every mutant is small and still applies, and that its tests exist. It also checks that there
// are enough mutants.
func TestMutants(t *testing.T) {
	mutants, err := load(".", regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	if loose, err := filepath.Glob("*.patch"); err != nil || len(loose) > 0 {
		t.Errorf("%v are ignored, because mutants must be entries of *.txtar; error %v", loose, err)
	}
	counts := map[string]int{}
	for _, m := range mutants {
		pkg, _, _ := strings.Cut(m.name, "-")
		counts[pkg]++
		tests, err := m.readTests(root)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, pattern := range m.listPatterns() {
			if !regexp.MustCompile(pattern).MatchString(tests) {
				t.Errorf("%s: no test matches %s", m.name, pattern)
			}
		}
		if n := m.size(); n > 16 {
			t.Errorf("%s changes %d lines; a mutant must be a small change", m.name, n)
		}
		switch files, err := m.apply(root); {
		case err != nil:
			t.Errorf("%s: %v", m.name, err)
		case len(files) == 0:
			t.Errorf("%s changes nothing", m.name)
		}
	}
	if len(mutants) < 50 {
		t.Errorf("%d mutants, want 50", len(mutants))
	}
	for _, pkg := range core {
		if counts[pkg] < 8 {
			t.Errorf("%d mutants of %s, want 8", counts[pkg], pkg)
		}
	}
}

// readTests returns the contents of the tests of the packages. It returns an error if a package has no tests.
func (m mutant) readTests(root string) (string, error) {
	var all strings.Builder
	for _, tested := range m.listPackages() {
		files, err := filepath.Glob(filepath.Join(root, tested, "*_test.go"))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("no tests in %s", tested)
		}
		for _, file := range files {
			data, err := os.ReadFile(file) //nolint:gosec // ours
			if err != nil {
				return "", err
			}
			all.Write(data)
		}
	}
	return all.String(), nil
}

// listPatterns returns regular expressions of which each must match the text of a test: the functions that the flag -run
// selects, and the specs that the flag -ginkgo.focus selects.
func (m mutant) listPatterns() []string {
	var patterns []string
	for i, flag := range m.tests[:max(len(m.tests)-1, 0)] {
		for name := range strings.SplitSeq(m.tests[i+1], "|") {
			switch flag {
			case "-run":
				name, _, _ = strings.Cut(name, "/")
				patterns = append(patterns, `func `+strings.TrimPrefix(strings.TrimSuffix(name, "$"), "^"))
			case "-ginkgo.focus": // the first words may be from containers and tables
				words := strings.Fields(name)
				patterns = append(patterns, strings.Join(words[max(len(words)-3, 0):], " "))
			}
		}
	}
	return patterns
}

// size returns the number of lines that a mutant removes or adds.
func (m mutant) size() int {
	n := 0
	for _, e := range m.edits {
		n += len(slices.DeleteFunc(slices.Clone(e.lines), func(line string) bool { return line[0] == ' ' }))
	}
	return n
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		text, want string // want is a part of the error, or empty if there must be no error
	}{
		"reads a mutant":                       {"# One is two,\n# as a test shows.\n# tests: ./pkg -run \"^TestA B$\"\n" + change, ""},
		"requires a description":               {"# tests: ./pkg\n" + change, "the fault is missing"},
		"requires tests":                       {"# One is two.\n" + change, "# tests: ./package\" is missing"},
		"requires a package of tests":          {"# One is two.\n# tests: -run TestA\n" + change, "# tests: ./package\" is missing"},
		"requires an edit":                     {"# One is two.\n# tests: ./pkg\n", "changes nothing"},
		"requires the directory in the name":   {"# One is two.\n# tests: ./pkg\n" + strings.ReplaceAll(change, "pkg", "other"), "does not begin with the top directory of other"},
		"requires a declaration":               {"# One is two.\n# tests: ./pkg\n@@ pkg\n+x\n", "does not contain a directory and a declaration"},
		"rejects a line without a declaration": {"# One is two.\n# tests: ./pkg\n-x\n", "does not belong to an edit"},
		"rejects a line of another form":       {"# One is two.\n# tests: ./pkg\n" + change + "x\n", "does not belong to an edit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := parse("pkg-m", []byte(tc.text))
			switch {
			case tc.want != "":
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			case err != nil:
				t.Error(err)
			case m.fault != "One is two, as a test shows." || strings.Join(m.tests, "|") != "./pkg|-run|^TestA B$" || m.edits[0].String() != change:
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestApply(t *testing.T) {
	const code = `package pkg

import (
	"fmt"
)

const (
	a = 1
	b = 1
)

type T[K any] struct{}

func (t *T[K]) Print() {
	fmt.Println(a)
	fmt.Println(b)
	fmt.Println(a)
}

func Print() {
	fmt.Println(a)
}
`
	cases := map[string]struct{ edit, old, new, fault string }{
		"changes a member of a group":                     {"@@ pkg b\n-b = 1\n+b = 2\n", "b = 1", "b = 2", ""},
		"changes a group":                                 {"@@ pkg import\n \"fmt\"\n+\"os\"\n", "\"fmt\"\n", "\"fmt\"\n\"os\"\n", ""},
		"changes a method":                                {"@@ pkg T.Print\n-fmt.Println(b)\n+fmt.Println(0)\n", "\tfmt.Println(b)", "fmt.Println(0)", ""},
		"adds a line between two lines":                   {"@@ pkg T.Print\n fmt.Println(b)\n+a++\n fmt.Println(a)\n", "Println(b)\n", "Println(b)\na++\n", ""},
		"removes a line of the named declaration":         {"@@ pkg Print\n-fmt.Println(a)\n", "Print() {\n\tfmt.Println(a)\n}", "Print() {\n}", ""},
		"rejects lines that occur twice":                  {"@@ pkg T.Print\n-fmt.Println(a)\n", "", "", "contains the lines of the edit 2 times"},
		"rejects lines that do not occur":                 {"@@ pkg T.Print\n-fmt.Println(c)\n", "", "", "contains the lines of the edit 0 times"},
		"rejects lines of another declaration":            {"@@ pkg Print\n-fmt.Println(b)\n", "", "", "contains the lines of the edit 0 times"},
		"rejects an edit that only adds lines":            {"@@ pkg Print\n+a++\n", "", "", "names no line of the code"},
		"rejects a package that does not exist":           {"@@ pkg/no Print\n-fmt.Println(a)\n", "", "", "contains the lines of the edit 0 times"},
		"does not change the declarations of a test file": {"@@ pkg InTest\n-x()\n", "", "", "contains the lines of the edit 0 times"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "pkg", "any.go"), code)
			write(t, filepath.Join(root, "pkg", "any_test.go"), "package pkg\n\nfunc InTest() {\n\tx()\n}\n")
			m, err := parse("pkg-m", []byte("# One is two.\n# tests: ./pkg\n"+tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			files, err := m.apply(root)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("got error %v, want one with %q", err, tc.fault)
				}
				return
			}
			before, after, _ := strings.Cut(code, tc.old)
			if want := before + tc.new + after; tc.old == "Println(b)\n" && string(files["pkg/any.go"]) == "" || err != nil {
				t.Errorf("got %q and error %v, want %q", files["pkg/any.go"], err, want)
			}
			if got, want := removeIndentation(string(files["pkg/any.go"])), removeIndentation(before+tc.new+after); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// removeIndentation removes the indentation.
func removeIndentation(code string) string { return strings.ReplaceAll(code, "\t", "") }

func TestEditOfHunk(t *testing.T) {
	const code = "package pkg\n\nfunc F() {\n\ta()\n\tb()\n\ta()\n}\n"
	const before = "--- a/pkg/a.go\n+++ b/pkg/a.go\n"
	cases := map[string]struct{ diff, want string }{
		"replaces a unique line":        {"@@ -5 +5 @@\n-\tb()\n+\tc()\n", "@@ pkg F\n-\tb()\n+\tc()\n"},
		"adds the context of a line":    {"@@ -6 +6 @@\n-\ta()\n+\tc()\n", "@@ pkg F\n \tb()\n-\ta()\n+\tc()\n }\n"},
		"adds the context of new lines": {"@@ -4,0 +5 @@\n+\tc()\n", "@@ pkg F\n \ta()\n+\tc()\n \tb()\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := parseHunks("diff --git a/pkg/a.go b/pkg/a.go\nindex 1..2 100644\n" + before + tc.diff)
			if len(found) != 1 {
				t.Fatalf("got the hunks %+v, want one", found)
			}
			got, err := found[0].toEdit([]byte(code))
			if err != nil || got.String() != tc.want {
				t.Errorf("got %q and error %v, want %q", got, err, tc.want)
			}
		})
	}
	if got, err := parseHunks(before + "@@ -1 +1 @@\n-package pkg\n+package other\n")[0].toEdit([]byte(code)); err == nil {
		t.Errorf("got %q for a line outside of all declarations, want an error", got)
	}
}
