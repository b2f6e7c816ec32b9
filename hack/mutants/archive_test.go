// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// change is an edit of the file pkg/a.go that the tests write.
const change = "@@ pkg a\n-const a = 1\n+const a = 2\n"

const one = "# One is two.\n# tests: ./pkg\n" + change

func TestLoad(t *testing.T) {
	cases := map[string]struct {
		archives map[string]string
		pattern  string
		want     string // the names of the loaded mutants, or a part of the error
	}{
		"mutants of all archives are sorted":   {map[string]string{"a": "-- pkg-c --\n" + one + "-- pkg-a --\n" + one, "b": "-- pkg-b --\n" + one}, "", "pkg-a pkg-b pkg-c"},
		"an expression that selects a mutant":  {map[string]string{"a": "-- pkg-c --\n" + one + "-- pkg-a --\n" + one}, "c$", "pkg-c"},
		"an expression that selects no mutant": {map[string]string{"a": "-- pkg-c --\n" + one}, "^x", "no mutant"},
		"a name that occurs twice":             {map[string]string{"a": "-- pkg-c --\n" + one, "b": "-- pkg-c --\n" + one}, "", "two mutants have the name pkg-c"},
		"text before the first entry":          {map[string]string{"a": one + "-- pkg-c --\n" + one}, "", "does not begin with a line"},
		"an invalid entry":                     {map[string]string{"a": "-- pkg-c --\n" + change}, "", "mutant pkg-c: the line that describes the fault is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.archives {
				write(t, filepath.Join(dir, file+".txtar"), text)
			}
			mutants, err := load(dir, regexp.MustCompile(tc.pattern))
			var names []string
			for _, m := range mutants {
				names = append(names, m.name)
			}
			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // a hook of git sets these variables
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	root, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(root, "pkg", "a.go")
	write(t, file, "package pkg\n\nconst a = 1\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	recorded := func(r recording) string {
		m, err := record(t.Context(), root, dir, r)
		if err != nil {
			return err.Error()
		}
		return m.String()
	}

	if got := recorded(recording{name: "pkg-m", fault: "One is two.", tests: "./pkg"}); !strings.Contains(got, "changes nothing") {
		t.Errorf("nothing changed: got %q", got)
	}
	write(t, file, "package pkg\n\nconst a = 2\n")
	if got := recorded(recording{name: "pkg-m", tests: "./pkg"}); !strings.Contains(got, "the line that describes the fault is missing") {
		t.Errorf("new mutant without a description: got %q", got)
	}
	want := "# One is two.\n# tests: ./pkg -run \"A B\"\n" + change
	if got := recorded(recording{name: "pkg-m", fault: "One is two.", tests: `./pkg -run "A B"`}); got != want {
		t.Errorf("new mutant: got %q, want %q", got, want)
	}
	write(t, file, "package pkg\n\nconst a = 3\n")
	want = strings.Replace(want, "a = 2", "a = 3", 1)
	if got := recorded(recording{name: "pkg-m", paths: []string{"pkg"}}); got != want {
		t.Errorf("again: got %q, want %q", got, want)
	}
	if got := recorded(recording{name: "pkg-a", fault: "Another.", tests: "./pkg", paths: []string{"other"}}); !strings.Contains(got, "changes nothing") {
		t.Errorf("another path: got %q", got)
	}
	recorded(recording{name: "pkg-a", fault: "Another.", tests: "./pkg"})
	kept, err := os.ReadFile(filepath.Join(dir, "pkg.txtar"))
	if err != nil || string(kept) != "-- pkg-a --\n"+strings.NewReplacer("One is two", "Another", ` -run "A B"`, "").Replace(want)+"-- pkg-m --\n"+want {
		t.Errorf("the archive is %q, %v", kept, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
