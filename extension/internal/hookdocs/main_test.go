// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

const guide = "../../../docs/hooks.md"

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestGuideIsUpToDate(t *testing.T) {
	doc := read(t, guide)
	want, err := render([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), doc); diff != "" {
		t.Errorf("docs/hooks.md is stale, run go generate ./extension: -want +got:\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	for _, typ := range extension.AllHookTypes() {
		if got := strings.Count(formatTable(), "| `"+string(typ)+"` |"); got != 2 {
			t.Errorf("%s: got %d rows, want one in each table", typ, got)
		}
	}
}

// TestGuideShowsExamples checks that each Go block of the guide is part of an example that runs as a test.
func TestGuideShowsExamples(t *testing.T) {
	examples := removeIndentation(read(t, "../../example_test.go") + read(t, "../../continuousreconcile/example_test.go") +
		read(t, "../../../deployerlib/hook_recipes_test.go"))
	_, rest, found := strings.Cut(read(t, guide), "```go\n")
	for blocks := 0; ; blocks++ {
		if !found {
			if blocks < 4 {
				t.Errorf("got %d Go blocks, want 4 at least", blocks)
			}
			return
		}
		block, after, _ := strings.Cut(rest, "```")
		if !strings.HasPrefix(block, "import (") && !strings.Contains(examples, removeIndentation(block)) {
			t.Errorf("no example has this:\n%s", block)
		}
		_, rest, found = strings.Cut(after, "```go\n")
	}
}

// TestGuideImports checks that the guide imports each package that its Go blocks use.
func TestGuideImports(t *testing.T) {
	t.Run("the guide lists the imports of its snippets [F90]", func(t *testing.T) {
		imported, used := map[string]bool{}, map[string]bool{}
		for _, block := range strings.Split(read(t, guide), "```go\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if strings.HasPrefix(block, "import (") {
				imported = listImports(t, "package p\n"+block)
				continue
			}
			for _, match := range regexp.MustCompile(`\b([a-z][a-z0-9]*)\.[A-Z]`).FindAllStringSubmatch(block, -1) {
				used[match[1]] = true
			}
		}
		for _, example := range []string{"../../example_test.go", "../../continuousreconcile/example_test.go", "../../../deployerlib/hook_recipes_test.go"} {
			for name := range listImports(t, read(t, example)) {
				if used[name] && !imported[name] {
					t.Errorf("the guide uses the package %s, but does not import it", name)
				}
			}
		}
		for name := range imported {
			if !used[name] {
				t.Errorf("the guide imports the package %s, but does not use it", name)
			}
		}
	})
}

// listImports returns the names of the packages that a Go file imports.
func listImports(t *testing.T, source string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, spec := range file.Imports {
		name := path.Base(strings.Trim(spec.Path.Value, `"`))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

// removeIndentation returns the code without indentation.
func removeIndentation(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(t *testing.T, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("only the text between the markers is replaced", func(t *testing.T) {
		write(t, "before\n"+begin+"old\n"+end+"after\n")
		for range 2 {
			if err := run([]string{file}); err != nil {
				t.Fatal(err)
			}
			got := read(t, file)
			if !strings.HasPrefix(got, "before\n"+begin) || !strings.HasSuffix(got, end+"after\n") || strings.Contains(got, "old") || strings.Count(got, "| `Start` |") != 2 {
				t.Errorf("got:\n%s", got)
			}
		}
	})
	t.Run("a file without markers is an error", func(t *testing.T) {
		write(t, "text\n"+end+begin)
		if err := run([]string{file}); err == nil || read(t, file) != "text\n"+end+begin {
			t.Errorf("run(...) = %v, want an error and an unchanged file", err)
		}
	})
	t.Run("exactly one existing file is required", func(t *testing.T) {
		for _, args := range [][]string{nil, {"a", "b"}, {filepath.Join(t.TempDir(), "none")}} {
			if err := run(args); err == nil {
				t.Errorf("%v: want an error", args)
			}
		}
	})
}
