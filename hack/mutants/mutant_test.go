// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the path of the repository, relative to this package.
const root = "../.."

// core lists packages that must have at least eight mutants each. The name of a mutant begins with the name of its
// package.
var core = []string{"contract", "extension", "patch", "apply", "stategraph"}

// TestMutants checks that every patch is small and still applies, and that the tests of every mutant exist. It also
// checks that there are enough mutants.
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
		for _, tested := range m.packages() {
			if found, err := filepath.Glob(filepath.Join(root, tested, "*_test.go")); err != nil || len(found) == 0 {
				t.Errorf("%s: no tests in %s: %v", m.name, tested, err)
			}
		}
		if n := changed(m.patch); n > 16 {
			t.Errorf("%s: the patch changes %d lines; a mutant must be a small change", m.name, n)
		}
		if err := m.apply(t.Context(), root, filepath.Join(t.TempDir(), m.name)); err != nil {
			t.Errorf("%s: %v", m.name, err)
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

// changed counts the lines that a patch adds or removes.
func changed(patch []byte) int {
	return len(regexp.MustCompile(`(?m)^[+-](?:[^+-]|$)`).FindAll(patch, -1))
}

const diff = "--- a/pkg/a.go\n+++ b/pkg/a.go\n@@ -1,3 +1,3 @@\n package pkg\n \n-const a = 1\n+const a = 2\n"

func TestParse(t *testing.T) {
	cases := map[string]struct {
		patch, want string // want is a part of the error, or empty if there must be no error
	}{
		"whole":       {"# One is two,\n# as everybody knows.\n# tests: ./pkg -run \"^TestA B$\"\n" + diff, ""},
		"no sentence": {"# tests: ./pkg\n" + diff, "the fault is missing"},
		"no tests":    {"# One is two.\n" + diff, "# tests: ./package\" is missing"},
		"no package":  {"# One is two.\n# tests: -run TestA\n" + diff, "# tests: ./package\" is missing"},
		"no patch":    {"# One is two.\n# tests: ./pkg\n", "changes nothing"},
		"other name":  {"# One is two.\n# tests: ./pkg\n" + strings.ReplaceAll(diff, "pkg/", "other/"), "does not begin with the top directory of other/a.go"},
		"a test":      {"# One is two.\n# tests: ./pkg\n" + strings.ReplaceAll(diff, "a.go", "a_test.go"), "changes a test"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := parse("pkg-m", []byte(tc.patch))
			switch {
			case tc.want != "":
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			case err != nil:
				t.Error(err)
			case m.fault != "One is two, as everybody knows." || strings.Join(m.tests, "|") != "./pkg|-run|^TestA B$" || m.files[0] != "pkg/a.go":
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestApply(t *testing.T) {
	from := t.TempDir()
	file := filepath.Join(from, "pkg", "a.go")
	write := func(text string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := parse("pkg-m", []byte("# One is two.\n# tests: ./pkg\n"+diff))
	if err != nil {
		t.Fatal(err)
	}
	const before = "package pkg\n\nconst a = 1\n"
	write(before)
	to := t.TempDir()
	if err := m.apply(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(to, "pkg", "a.go"))
	if err != nil || string(got) != "package pkg\n\nconst a = 2\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != before {
		t.Errorf("the original file was changed to %q, error %v", kept, err)
	}
	write("package pkg\n\nconst a = 3\n")
	if err := m.apply(t.Context(), from, t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("patch that no longer applies: got error %v", err)
	}
	if err := m.apply(t.Context(), t.TempDir(), t.TempDir()); err == nil {
		t.Error("got no error for a missing file")
	}
}
